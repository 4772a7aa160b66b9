"""Process functions through the harnesses users have: state, timers, side outputs, contexts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from yarnflow.errors import InvalidKey, InvalidStateUse
from yarnflow.operators.elements import MAX_WATERMARK_MS, MIN_WATERMARK_MS
from yarnflow.operators.functions.broadcast import (
    BroadcastContext,
    BroadcastProcessFunction,
    BroadcastReadOnlyContext,
    KeyedBroadcastContext,
    KeyedBroadcastProcessFunction,
    KeyedBroadcastTimerContext,
    KeyedReadOnlyContext,
)
from yarnflow.operators.functions.elements import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    KeySelector,
)
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.functions.process import (
    CoProcessFunction,
    ElementContext,
    KeyedContext,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
    TimerContext,
)
from yarnflow.operators.functions.runtime_context import RuntimeContext
from yarnflow.operators.functions.time import TimeDomain
from yarnflow.operators.process.two_inputs import CoFlatMapDefinition, CoMapDefinition
from yarnflow.operators.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from yarnflow.operators.state.ttl import StateTtlConfig
from yarnflow.testing.functions import (
    BroadcastHarness,
    CoProcessHarness,
    KeyedCoProcessHarness,
    KeyedProcessHarness,
    OperatorHarness,
    ProcessHarness,
)

LATE = OutputTag("late")


def first(value: Any) -> Any:
    return value[0]


class Times(ProcessFunction):
    def process_element(self, value: Any, ctx: ElementContext) -> Iterator[Any]:
        service = ctx.timer_service()
        yield ctx.timestamp(), service.current_watermark(), service.current_processing_time()
        yield LATE, value


def test_a_process_function_knows_times_and_side_outputs() -> None:
    harness = ProcessHarness(Times())
    harness.process_element("a")
    harness.process_watermark(5)
    harness.set_processing_time(100)
    harness.process_element("b", 3)
    assert harness.take_output() == [((MIN_WATERMARK_MS, MIN_WATERMARK_MS, 0), None), ((3, 5, 100), 3)]
    assert harness.take_side_output(LATE) == [("a", None), ("b", 3)]


def test_without_a_reader_a_tagged_value_is_an_element_like_any_other() -> None:
    from yarnflow.operators.process.process_elements import ProcessDefinition

    harness = OperatorHarness(ProcessDefinition(Times(), side_outputs=False))
    harness.process_element("a")
    assert harness.take_values()[1] == (LATE, "a")


@pytest.mark.parametrize(
    "method", ["register_event_time_timer", "delete_processing_time_timer"]
)
def test_timers_of_a_stream_that_is_not_keyed_are_refused(method: str) -> None:
    class Wants(ProcessFunction):
        def process_element(self, value: Any, ctx: ElementContext) -> None:
            getattr(ctx.timer_service(), method)(1)

    with pytest.raises(InvalidStateUse, match="operator 'harness': timers need a keyed stream; call key_by"):
        ProcessHarness(Wants()).process_element("a")


def test_state_of_a_stream_that_is_not_keyed_is_refused() -> None:
    class Wants(ProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            runtime_context.get_state(ValueStateDescriptor("count"))

        def process_element(self, value: Any, ctx: ElementContext) -> None:
            raise AssertionError

    with pytest.raises(InvalidStateUse, match="state 'count' was asked for on a stream that is not keyed"):
        ProcessHarness(Wants())


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return (0, 0)

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class AllKinds(KeyedProcessFunction):
    """Has one state of each kind; the element says what to do."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.value = runtime_context.get_state(ValueStateDescriptor("value", "STRING"))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list", "LONG"))
        self.map = runtime_context.get_map_state(MapStateDescriptor("map", "STRING", "LONG"))
        self.sum = runtime_context.get_reducing_state(
            ReducingStateDescriptor("sum", lambda a, b: a + b, "LONG")
        )
        self.mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Mean(), None))

    def process_element(self, value: Any, ctx: KeyedContext) -> Iterable[Any]:
        key, number = value
        assert key == ctx.get_current_key()
        if number is None:
            for state in (self.value, self.list, self.map, self.sum, self.mean):
                state.clear()
        else:
            self.value.update(f"{self.value.value() or ''}{number}")
            self.list.add(number)
            self.map[f"n{number}"] = self.map.get(f"n{number}") or 0 + 1
            self.sum.add(number)
            self.mean.add(number)
        return [(key, self.value.value(), list(self.list), dict(self.map.items()), self.sum.get(),
                 self.mean.get())]  # fmt: skip


def test_each_kind_of_state_belongs_to_the_key_and_survives() -> None:
    harness = KeyedProcessHarness(AllKinds(), first)
    harness.process_elements([(("a", 1), None), (("b", 5), None), (("a", 2), None)])
    assert harness.take_values()[1:] == [
        ("b", "5", [5], {"n5": 1}, 5, 5.0),
        ("a", "12", [1, 2], {"n1": 1, "n2": 1}, 3, 1.5),
    ]
    harness.restart()
    harness.process_element(("a", 6))
    assert harness.take_values() == [("a", "126", [1, 2, 6], {"n1": 1, "n2": 1, "n6": 1}, 9, 3.0)]
    assert harness.state_of("list", "b") == [5]
    harness.process_elements([(("a", None), None), (("b", None), None)])
    assert harness.take_values() == [("a", None, [], {}, None, None), ("b", None, [], {}, None, None)]
    assert harness.state_entries() == 0


class Maps(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.map = runtime_context.get_map_state(MapStateDescriptor("map", None, None))
        self.list = runtime_context.get_list_state(ListStateDescriptor("list", None))

    def process_element(self, value: Any, ctx: KeyedContext) -> Iterable[Any]:
        assert self.map.is_empty() and "x" not in self.map
        self.map.put_all({"x": None, "y": 2})
        assert "x" in self.map and self.map["x"] is None and self.map.contains("y")
        del self.map["y"]
        self.map.remove("not there")
        assert (list(self.map), list(self.map.keys()), list(self.map.values())) == (["x"], ["x"], [None])
        with pytest.raises(InvalidKey, match="map state 'map': list cannot be a key"):
            self.map.put([1], 1)
        self.list.add_all([1, 2])
        for number in self.list:
            self.list.add(number)
        yield self.list.get()
        given = [9]
        self.list.update(given)
        given.append(10)
        yield self.list.get()
        self.list.update([])
        yield self.list.get()


def test_maps_and_lists_can_be_changed_while_they_are_read() -> None:
    harness = KeyedProcessHarness(Maps(), first)
    harness.process_element("k")
    assert harness.take_values() == [[1, 2, 1, 2], [9], []]


def test_state_used_without_a_key_is_said() -> None:
    class Early(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            runtime_context.get_state(ValueStateDescriptor("count")).value()

        def process_element(self, value: Any, ctx: KeyedContext) -> None:
            raise AssertionError

    with pytest.raises(InvalidStateUse, match="operator 'harness': state 'count' was used where there is no"):
        KeyedProcessHarness(Early(), first)


def test_a_state_registered_as_two_kinds_is_said() -> None:
    class Twice(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            runtime_context.get_state(ValueStateDescriptor("s"))
            runtime_context.get_list_state(ListStateDescriptor("s"))

        def process_element(self, value: Any, ctx: KeyedContext) -> None:
            raise AssertionError

    with pytest.raises(InvalidStateUse, match="state 's' is registered twice, as value state and as list"):
        KeyedProcessHarness(Twice(), first)


class Forgets(KeyedProcessFunction):
    def __init__(self, config: StateTtlConfig) -> None:
        self.config = config

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("last")
        descriptor.enable_time_to_live(self.config)
        self.last = runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: KeyedContext) -> Iterable[Any]:
        found = self.last.value()
        if value[1] is not None:
            self.last.update(value[1])
        return [found]


@pytest.mark.parametrize(
    "on_read, return_expired, expected",
    [(False, False, [7, None, None]), (True, False, [7, 7, None]), (False, True, [7, 7, None])],
)
def test_time_to_live(on_read: bool, return_expired: bool, expected: list[Any]) -> None:
    builder = StateTtlConfig.new_builder(timedelta(seconds=1))
    if on_read:
        builder.update_ttl_on_read_and_write()
    if return_expired:
        builder.return_expired_if_not_cleaned_up()
    harness = KeyedProcessHarness(Forgets(builder.build()), first)
    harness.process_element(("a", 7))
    harness.take_values()
    for time in (600, 1200, 2300):
        harness.set_processing_time(time)
        harness.process_element(("a", None))
    assert harness.take_values() == expected


class ForgetsAll(KeyedProcessFunction):
    """``(key, number)`` into states of all forms, which live for a second."""

    def open(self, runtime_context: RuntimeContext) -> None:
        config = StateTtlConfig.new_builder(timedelta(seconds=1)).build()
        value, items = ValueStateDescriptor("value"), ListStateDescriptor("items")
        entries = MapStateDescriptor("entries")
        for descriptor in (value, items, entries):
            descriptor.enable_time_to_live(config)
        self.value = runtime_context.get_state(value)
        self.items = runtime_context.get_list_state(items)
        self.entries = runtime_context.get_map_state(entries)

    def process_element(self, value: Any, ctx: KeyedContext) -> None:
        self.value.update(value[1])
        self.items.add(value[1])
        self.entries.put(value[1], "x")


def test_a_test_sees_state_as_the_function_does_and_no_expired_state() -> None:
    harness = KeyedProcessHarness(ForgetsAll(), first)
    harness.set_processing_time(500)
    harness.process_elements([(("a", 7), None), (("b", 8), None)])
    assert [harness.state_of(name, "a") for name in ("value", "items", "entries")] == [7, [7], {7: "x"}]
    assert harness.state_entries() == 6
    harness.set_processing_time(1000)
    harness.process_element(("b", 9))
    harness.set_processing_time(1500)
    assert [harness.state_of(name, "a") for name in ("value", "items", "entries")] == [None] * 3
    assert harness.state_of("value", "b") == 9
    assert harness.state_entries() == 3


class Timed(KeyedProcessFunction):
    """``(key, "event" | "clock" | "delete", time)``; tells what fires."""

    def process_element(self, value: Any, ctx: KeyedContext) -> None:
        _, what, time = value
        service = ctx.timer_service()
        if what == "event":
            service.register_event_time_timer(time)
        elif what == "clock":
            service.register_processing_time_timer(time)
        else:
            service.delete_event_time_timer(time)
            service.delete_processing_time_timer(time)

    def on_timer(self, timestamp: int, ctx: TimerContext) -> Iterator[Any]:
        yield ctx.get_current_key(), ctx.time_domain(), ctx.timestamp()
        yield LATE, timestamp


def test_timers_fire_once_in_order_with_their_key_and_domain() -> None:
    harness = KeyedProcessHarness(Timed(), first)
    for value in [("a", "event", 20), ("a", "event", 20), ("b", "event", 10), ("a", "clock", 10),
                  ("c", "event", 15), ("c", "delete", 15)]:  # fmt: skip
        harness.process_element(value)
    assert harness.event_time_timers() == [(10, "b"), (20, "a")]
    assert harness.processing_time_timers() == [(10, "a")]
    harness.restart()
    harness.process_watermark(MAX_WATERMARK_MS)
    assert harness.take_output() == [
        (("b", TimeDomain.EVENT_TIME, 10), 10), (("a", TimeDomain.EVENT_TIME, 20), 20)
    ]  # fmt: skip
    harness.set_processing_time(10)
    assert harness.take_output() == [(("a", TimeDomain.PROCESSING_TIME, 10), 10)]
    assert harness.take_side_output(LATE) == [(10, 10), (20, 20), (10, 10)]


def test_what_on_timer_raises_names_the_timer() -> None:
    class Fails(Timed):
        def on_timer(self, timestamp: int, ctx: TimerContext) -> Iterator[Any]:
            raise ValueError("no")

    harness = KeyedProcessHarness(Fails(), first, name="Alarm")
    harness.process_element(("a", "event", 5))
    with pytest.raises(ValueError, match="no") as caught:
        harness.process_watermark(5)
    assert caught.value.__notes__ == ["operator 'Alarm': timer 5 of key 'a'"]


def test_a_function_without_on_timer_may_have_timers() -> None:
    class Quiet(KeyedProcessFunction):
        def process_element(self, value: Any, ctx: KeyedContext) -> None:
            ctx.timer_service().register_event_time_timer(1)

    harness = KeyedProcessHarness(Quiet(), first)
    harness.process_element("a")
    harness.process_watermark(1)
    assert harness.take_output() == []


class ByLength(KeySelector):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.opened = True

    def get_key(self, value: Any) -> Any:
        assert self.opened
        return len(value)


class Join(KeyedCoProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.left = runtime_context.get_state(ValueStateDescriptor("left"))

    def process_element1(self, value: Any, ctx: KeyedContext) -> None:
        self.left.update(value)
        ctx.timer_service().register_event_time_timer(100)

    def process_element2(self, value: Any, ctx: KeyedContext) -> Iterator[Any]:
        yield ctx.get_current_key(), self.left.value(), value

    def on_timer(self, timestamp: int, ctx: TimerContext) -> Iterator[Any]:
        yield "gone", self.left.value()
        self.left.clear()


def test_two_keyed_streams_share_state_and_timers() -> None:
    harness = KeyedCoProcessHarness(Join(), ByLength(), len)
    harness.process_element1("ab", 1)
    harness.process_element2("cd", 2)
    harness.process_element2("efg", 3)
    harness.process_watermark(100)
    assert harness.take_output() == [((2, "ab", "cd"), 2), ((3, None, "efg"), 3), (("gone", "ab"), 100)]
    assert harness.state_entries() == 0


class Sides(CoProcessFunction):
    def process_element1(self, value: Any, ctx: ElementContext) -> Iterator[Any]:
        yield 1, value, ctx.timestamp()

    def process_element2(self, value: Any, ctx: ElementContext) -> Iterator[Any]:
        yield LATE, (2, value)


def test_two_streams_that_are_not_keyed() -> None:
    harness = CoProcessHarness(Sides())
    harness.process_element1("a", 5)
    harness.process_element2("b", 6)
    assert harness.take_output() == [((1, "a", 5), 5)]
    assert harness.take_side_output(LATE) == [((2, "b"), 6)]


class Both(CoMapFunction, CoFlatMapFunction):
    def map1(self, value: Any) -> Any:
        return value if value else None

    def map2(self, value: Any) -> Any:
        return -value

    def flat_map1(self, value: Any) -> Any:
        return [value] * value

    def flat_map2(self, value: Any) -> Any:
        return None


def test_co_map_leaves_none_out_and_co_flat_map_takes_any_number() -> None:
    harness = OperatorHarness(CoMapDefinition(Both()))
    harness.process_elements([(1, 10), (0, 20), (2, 30)], 0)
    harness.process_element(4, 40, 1)
    assert harness.take_output() == [(1, 10), (2, 30), (-4, 40)]
    harness = OperatorHarness(CoFlatMapDefinition(Both()), (first_digit, first_digit))
    harness.process_elements([(1, 10), (2, 20)], 0)
    harness.process_element(4, 40, 1)
    assert harness.take_output() == [(1, 10), (2, 20), (2, 20)]


def first_digit(value: int) -> str:
    return str(value)[0]


RULES = MapStateDescriptor("rules", "STRING", "LONG")
SEEN = ValueStateDescriptor("seen")


class Rules(BroadcastProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: BroadcastReadOnlyContext) -> Iterator[Any]:
        rules = ctx.get_broadcast_state(RULES)
        yield value, rules.get(value), sorted(rules.items()), ctx.current_watermark()

    def process_broadcast_element(self, value: Any, ctx: BroadcastContext) -> Iterator[Any]:
        ctx.get_broadcast_state(RULES).put(*value)
        yield "rule", value, ctx.timestamp()


def test_broadcast_state_beside_a_stream_that_is_not_keyed() -> None:
    harness = BroadcastHarness(Rules())
    harness.process_element("a", 1)
    harness.process_broadcast_element(("a", 5), 2)
    harness.restart()
    harness.process_element("a", 3)
    assert harness.take_values() == [
        ("a", None, [], MIN_WATERMARK_MS), ("rule", ("a", 5), 2), ("a", 5, [("a", 5)], MIN_WATERMARK_MS)
    ]  # fmt: skip


class KeyedRules(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(SEEN)

    def process_element(self, value: Any, ctx: KeyedReadOnlyContext) -> Iterator[Any]:
        self.seen.update((self.seen.value() or 0) + 1)
        ctx.timer_service().register_event_time_timer(50)
        yield ctx.get_current_key(), dict(ctx.get_broadcast_state(RULES).items())

    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastContext) -> Iterator[Any]:
        if value is None:
            counts: dict[Any, Any] = {}
            ctx.apply_to_keyed_state(SEEN, lambda key, state: counts.update({key: state.value()}))
            yield counts
            ctx.apply_to_keyed_state(SEEN, lambda key, state: state.clear())
        elif value == "wrong":
            self.seen.value()
        else:
            ctx.get_broadcast_state(RULES).put(*value)

    def on_timer(self, timestamp: int, ctx: KeyedBroadcastTimerContext) -> Iterator[Any]:
        yield "timer", ctx.get_current_key(), ctx.get_broadcast_state(RULES).get("r"), ctx.time_domain()


def test_broadcast_state_beside_a_keyed_stream() -> None:
    harness = BroadcastHarness(KeyedRules(), first)
    harness.process_element(("a", 1))
    harness.process_broadcast_element(("r", 1))
    harness.process_elements([(("b", 1), None), (("b", 2), None)])
    harness.process_broadcast_element(None)
    harness.process_watermark(50)
    assert harness.take_values() == [
        ("a", {}), ("b", {"r": 1}), ("b", {"r": 1}), {"a": 1, "b": 2},
        ("timer", "a", 1, TimeDomain.EVENT_TIME), ("timer", "b", 1, TimeDomain.EVENT_TIME),
    ]  # fmt: skip
    # the broadcast state is what is left
    assert harness.state_entries() == 1


def test_keyed_state_is_refused_on_the_broadcast_side() -> None:
    with pytest.raises(InvalidStateUse, match="state 'seen' was used where there is no current key"):
        BroadcastHarness(KeyedRules(), first).process_broadcast_element("wrong")


def test_broadcast_state_cannot_be_changed_by_an_element() -> None:
    class Clears(Rules):
        def process_element(self, value: Any, ctx: BroadcastReadOnlyContext) -> Iterator[Any]:
            ctx.get_broadcast_state(RULES).clear()
            yield

    with pytest.raises(InvalidStateUse, match="'rules' can only be changed in process_broadcast_element"):
        BroadcastHarness(Clears()).process_element("a")
