"""Levels of a job that runs as a batch: order of elements, and timers at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.operators.task.test_planner import environment, planned
from yarnflow.api.common import Types
from yarnflow.api.datastream import BroadcastProcessFunction, KeyedCoProcessFunction, KeyedProcessFunction
from yarnflow.api.datastream.state import MapStateDescriptor
from yarnflow.operators.elements import MAX_WATERMARK_MS, MIN_WATERMARK_MS, Chunk
from yarnflow.testing.in_memory_levels import InMemoryLevels

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])


def first(pair: Any) -> Any:
    return pair[0]


def run(env: Any, *sources: list[list[Chunk]]) -> list[Any]:
    """What reaches the only sink of a batch."""
    _region, plan = planned(env)
    levels = InMemoryLevels([source.level for source in plan.sources], list(plan.levels), max(plan.groups))
    levels.run_batch(dict(enumerate(sources)), now_ms=1000, end=True, whole=True)
    (found,) = levels.sinks.values()
    return found


class Seen(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        timers = ctx.timer_service()
        assert timers.current_watermark() == MIN_WATERMARK_MS
        timers.register_event_time_timer(max(ctx.timestamp(), 0))
        timers.register_processing_time_timer(value[1])
        yield f"{value[0]} {value[1]}"

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[Any]:
        timers = ctx.timer_service()
        assert timers.current_watermark() == MAX_WATERMARK_MS
        # would go on for ever
        timers.register_event_time_timer(timestamp + 1)
        timers.register_processing_time_timer(timestamp + 1)
        yield f"{ctx.get_current_key()} {ctx.time_domain().name} {timestamp}"


def keyed() -> Any:
    env = environment()
    pairs = env.from_collection([("a", 1)], type_info=PAIR)
    pairs.key_by(first, Types.STRING()).process(Seen(), Types.STRING()).map(lambda text: text).print()
    return env


def texts(found: list[Any]) -> list[str]:
    return [text.partition("> ")[2] or text for text in found]


def test_elements_come_by_their_times_and_timers_behind_them() -> None:
    # one timer of the clock is due, the other one is not
    chunks = [Chunk([("a", 30), ("a", 5_000)], [30, None]), Chunk([("a", 10), ("a", 20)], [10, 20])]
    assert texts(run(keyed(), [[chunks[0]], [chunks[1]]])) == [
        "a 5000", "a 10", "a 20", "a 30",
        "a EVENT_TIME 0", "a EVENT_TIME 10", "a EVENT_TIME 20", "a EVENT_TIME 30",
        "a PROCESSING_TIME 10", "a PROCESSING_TIME 20", "a PROCESSING_TIME 30", "a PROCESSING_TIME 5000",
    ]  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=40))
def test_elements_of_one_time_stay_in_their_order(pairs: list[tuple[str, int]]) -> None:
    numbered = [(key, number) for number, (key, _) in enumerate(pairs)]
    times: list[int | None] = [time_ms for _, time_ms in pairs]
    if not pairs:
        return
    found = texts(run(keyed(), [[Chunk(list(numbered), times)]]))
    for key in {key for key, _ in pairs}:
        ordered = sorted((time_ms, number) for number, (k, time_ms) in enumerate(pairs) if k == key)
        elements = [text for text in found if text.startswith(f"{key} ") and "TIME" not in text]
        assert elements == [f"{key} {number}" for _, number in ordered]


class Both(KeyedCoProcessFunction):
    def process_element1(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield f"left {value[1]}"

    def process_element2(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield f"right {value[1]}"


def test_two_keyed_inputs_are_one_in_time() -> None:
    env = environment()
    left, right = (env.from_collection([("a", 1)], type_info=PAIR) for _ in range(2))
    connected = left.connect(right).key_by(first, first, Types.STRING())
    connected.process(Both(), Types.STRING()).map(lambda text: text).print()
    found = run(
        env,
        [[Chunk([("a", 3), ("a", 1)], [3, 1])]],
        [[Chunk([("a", 2), ("a", 4)], [2, 4])]],
    )
    assert texts(found) == ["left 1", "right 2", "left 3", "right 4"]


class Rules(BroadcastProcessFunction[Any, Any, Any]):
    state = MapStateDescriptor("rules", Types.STRING(), Types.LONG())

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        yield f"{value} {ctx.get_broadcast_state(self.state).get('rule')}"

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(self.state).put("rule", value)


def test_broadcast_elements_come_first() -> None:
    env = environment()
    numbers, rules = (env.from_collection([1], type_info=Types.LONG()) for _ in range(2))
    connected = numbers.connect(rules.broadcast(Rules.state))
    connected.process(Rules(), Types.STRING()).map(lambda text: text).print()
    found = run(env, [[Chunk([1, 2])]], [[Chunk([7])]])
    assert sorted(texts(found)) == ["1 7", "2 7"]
