"""Levels in memory: routing, order, watermarks and timers."""

from __future__ import annotations

import itertools
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnflow.errors import InvalidKey
from yarnflow.graph.closures import Closure
from yarnflow.graph.type_info import PICKLED, BasicType, BasicTypeInfo, TypeInfo
from yarnflow.operators.elements import MAX_WATERMARK_MS, Chunk, Output, SourceChunk
from yarnflow.operators.functions.broadcast import KeyedBroadcastProcessFunction
from yarnflow.operators.functions.runtime_context import RuntimeContext
from yarnflow.operators.process.broadcast import KeyedBroadcastProcessDefinition
from yarnflow.operators.process.key_selection import KeySelection, Partitioning
from yarnflow.operators.process.operator import OperatorBase, OperatorContext, WatermarkStatus
from yarnflow.operators.state.descriptors import ValueStateDescriptor
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.task.blocks import ELEMENTS, Block
from yarnflow.operators.task.key_groups import key_group
from yarnflow.operators.task.level_run import LevelRun
from yarnflow.operators.task.micro_batch import MicroBatch
from yarnflow.operators.task.plan import (
    ChainedRoute,
    Exchange,
    ExchangeRoute,
    JobInfo,
    LevelPlan,
    OperatorPlan,
    Route,
    SinkRoute,
)
from yarnflow.testing.in_memory_levels import InMemoryLevels

SINK, OTHER_SINK = 90, 91
LONG = BasicTypeInfo(BasicType.LONG)


def closure(thing: object) -> Closure:
    return Closure(cloudpickle.dumps(thing), "it", "job.py:1")


def operator(node_id: int, definition: object, *routes: Route, stateful: bool = False) -> OperatorPlan:
    shipped = closure(definition)
    return OperatorPlan(node_id, f"op{node_id}", f"Op {node_id}", "job.py:1", shipped, routes, stateful)


@dataclass
class Mapped:
    """Times ten."""

    def build(self) -> Any:
        return MappedOperator()


class MappedOperator(OperatorBase):
    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        output.emit(Chunk([value * 10 for value in chunk.values], chunk.timestamps))


@dataclass
class Late:
    """Assigns the value as time; the watermark is the largest but ``by``."""

    by: int = 0

    def build(self) -> Any:
        return LateOperator(self.by)


class LateOperator(OperatorBase):
    def __init__(self, by: int) -> None:
        self.by = by

    def open(self, context: OperatorContext) -> None:
        assert context.state is not None
        self.table = context.state.table("largest", StateKind.VALUE)

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        times = [int(value) for value in chunk.values]
        self.table.put(None, max(times + [self.table.get(None, None, 0)]))
        output.emit(Chunk(chunk.values, list(times)))

    def output_watermark(self, input_watermark_ms: int) -> WatermarkStatus:
        return WatermarkStatus(self.table.get(None, None, 0) - self.by - 1)


@dataclass
class Counter:
    """Emits ``(key, n)`` for each element, and ``(key, "timer", time, watermark)`` for its timers."""

    def build(self) -> Any:
        return CounterOperator()


class CounterOperator(OperatorBase):
    context: OperatorContext

    def open(self, context: OperatorContext) -> None:
        self.context = context
        assert context.state is not None
        self.table = context.state.table("n", StateKind.VALUE)

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        assert chunk.keys is not None and self.context.timers is not None
        out = []
        for position, key in enumerate(chunk.keys):
            n = self.table.get(key, None, 0) + 1
            self.table.put(key, n)
            out.append((key, n))
            if chunk.timestamps is not None and (time := chunk.timestamps[position]) is not None:
                self.context.timers.register_event_time(time, key)
        output.emit(Chunk(out))
        output.emit_side("seen", Chunk(list(chunk.values)))

    def on_event_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        output.emit(Chunk([(key, "timer", timestamp_ms, self.context.current_watermark_ms)], [timestamp_ms]))


def mod3(value: int) -> int:
    return value % 3


def in_a_list(value: int) -> object:
    return [value]


def as_not_a_number(value: int) -> object:
    return math.nan


def counting(*head: OperatorPlan, first: int, groups: int = 4) -> InMemoryLevels:
    """``source → head … → key_by(mod 3) → count → sink``; the head's last operator is to have EXCHANGE."""
    source = LevelPlan(0, head, head=(ChainedRoute(first, 0),) if head else (exchange(),))
    level = LevelPlan(
        1,
        (operator(5, Counter(), SinkRoute(SINK), SinkRoute(OTHER_SINK, "seen"), stateful=True),),
        channels={(5, 0): (7,)},
    )
    return InMemoryLevels([source], [level], groups)


def exchange(kind: Exchange = Exchange.HASH) -> ExchangeRoute:
    return ExchangeRoute(1, 5, 0, kind, 4, 7, closure(KeySelection(mod3)))


def test_elements_are_counted_by_key_over_batches() -> None:
    job = counting(operator(1, Mapped(), exchange()), first=1)
    job.run_batch({0: [[Chunk([1, 2, 3])], [Chunk([4])]]})
    job.run_batch({0: [[Chunk([1])]]})
    assert sorted(job.sinks[SINK]) == [(0, 1), (1, 1), (1, 2), (1, 3), (2, 1)]
    assert sorted(job.sinks[OTHER_SINK]) == [10, 10, 20, 30, 40]


@given(st.lists(st.lists(st.lists(st.integers(0, 99)), max_size=3), max_size=4))
def test_elements_of_a_key_and_sender_stay_in_order(batches: list[list[list[int]]]) -> None:
    job = counting(first=0)
    for partitions in batches:
        job.run_batch({0: [[Chunk(partition)] for partition in partitions]})
    for key in range(3):
        sent = [v for partitions in batches for partition in partitions for v in partition if v % 3 == key]
        assert [v for v in job.sinks.get(OTHER_SINK, []) if v % 3 == key] == sent


@pytest.mark.parametrize("element_type", [PICKLED, LONG, BasicTypeInfo(BasicType.DOUBLE)])
@pytest.mark.parametrize("sizes", [(5000, 3, 4000), (3, 5000, 7), (1500, 1500), (70_000,)])
def test_large_chunks_arrive_as_small_ones_do(element_type: TypeInfo, sizes: tuple[int, ...]) -> None:
    route = replace(exchange(), element_type=element_type)
    level = LevelPlan(1, (operator(5, Counter(), SinkRoute(OTHER_SINK, "seen")),), channels={(5, 0): (7,)})
    job = InMemoryLevels([LevelPlan(0, (), head=(route,))], [level])
    numbers = iter(range(-100, 100_000))
    sent = [list(itertools.islice(numbers, size)) for size in sizes]
    job.run_batch({0: [[Chunk(list(values), list(values)) for values in sent]]})
    for key in range(3):
        kind = float if element_type == BasicTypeInfo(BasicType.DOUBLE) else int
        expected = [kind(value) for values in sent for value in values if value % 3 == key]
        found = [value for value in job.sinks[OTHER_SINK] if value % 3 == key]
        assert repr(found) == repr(expected)


@pytest.mark.parametrize("select", [in_a_list, as_not_a_number])
def test_an_error_names_the_key_also_of_a_large_chunk(select: Callable[[int], object]) -> None:
    route = replace(exchange(), selector=closure(KeySelection(select)), element_type=LONG)
    job = InMemoryLevels([LevelPlan(0, (), head=(route,))], [])
    with pytest.raises(InvalidKey, match=r"key (\[7\]|nan) .* cannot be (hashed|a key)"):
        job.run_batch({0: [[Chunk([7] * 5000)]]})


def test_timers_fire_when_the_least_watermark_of_all_senders_passes() -> None:
    job = counting(operator(1, Late(), exchange()), first=1)
    job.run_batch({0: [[Chunk([10, 20])], [Chunk([15])]]})
    fired = [row for row in job.sinks[SINK] if row[1] == "timer"]
    assert fired == [(1, "timer", 10, 14)]
    job.run_batch({0: [[Chunk([100])]]})
    fired = [row for row in job.sinks[SINK] if row[1] == "timer"]
    assert sorted(row[2] for row in fired) == [10, 15, 20]


def test_a_watermark_never_goes_back() -> None:
    job = counting(operator(1, Late(), exchange()), first=1)
    job.run_batch({0: [[Chunk([50])]]})
    job.run_batch({0: [[Chunk([10])]]})
    # late for its own timer, which therefore fires with the watermark after it
    job.run_batch({0: [[Chunk([11])]]})
    marks = [row[3] for row in job.sinks[SINK] if row[1] == "timer"]
    assert marks == sorted(marks)


def test_the_end_of_input_fires_all_timers() -> None:
    job = counting(operator(1, Late(), exchange()), first=1)
    job.run_batch({0: [[Chunk([10])]]})
    job.run_batch(end=True)
    assert job.sinks[SINK][-1] == (1, "timer", 10, MAX_WATERMARK_MS)


def test_levels_behind_each_other_see_results_of_timers_before_the_watermark() -> None:
    again = ExchangeRoute(2, 6, 0, Exchange.HASH, 4, 8)
    source = LevelPlan(0, (operator(1, Late(), exchange()),), head=(ChainedRoute(1, 0),))
    first = LevelPlan(1, (operator(5, Counter(), again, stateful=True),), channels={(5, 0): (7,)})
    second = LevelPlan(2, (operator(6, Counter(), SinkRoute(SINK), stateful=True),), channels={(6, 0): (8,)})
    job = InMemoryLevels([source], [first, second])
    job.run_batch({0: [[Chunk([10, 20])]]})
    rows = job.sinks[SINK]
    # the first level's timer of 10 became an element of time 10 here, whose timer the same watermark fires
    key = (1, "timer", 10, 19)
    assert (key, 1) in rows and (key, "timer", 10, 19) in rows
    job.run_batch(end=True)
    assert ((2, "timer", 20, MAX_WATERMARK_MS), "timer", 20, MAX_WATERMARK_MS) in job.sinks[SINK]


def test_side_outputs_of_a_source_have_ways_of_their_own() -> None:
    keyed = ExchangeRoute(1, 5, 0, Exchange.HASH, 4, 7, side="bad")
    head = (SinkRoute(SINK), SinkRoute(OTHER_SINK, "bad"), keyed)
    level = LevelPlan(1, (operator(5, Mapped(), SinkRoute(SINK)),), channels={(5, 0): (7,)})
    job = InMemoryLevels([LevelPlan(0, (), head=head)], [level])
    chunks = [SourceChunk([1, 2], sides={"bad": Chunk([30]), "unread": Chunk([0])}), Chunk([4])]
    job.run_batch({0: [chunks]})
    assert sorted(job.sinks[SINK]) == [1, 2, 4, 300]
    assert job.sinks[OTHER_SINK] == [30]


@pytest.mark.parametrize("kind", [Exchange.REBALANCE, Exchange.FORWARD, Exchange.GLOBAL, Exchange.BROADCAST])
def test_plain_exchanges_deliver_every_element(kind: Exchange) -> None:
    route = ExchangeRoute(1, 5, 0, kind, 3, 7)
    source = LevelPlan(0, (), head=(route,))
    level = LevelPlan(1, (operator(5, Mapped(), SinkRoute(SINK)),), channels={(5, 0): (7,)})
    job = InMemoryLevels([source], [level], groups=3)
    job.run_batch({0: [[Chunk(list(range(7)), list(range(7)))]]})
    times = 3 if kind is Exchange.BROADCAST else 1
    assert sorted(job.sinks[SINK]) == sorted([n * 10 for n in range(7)] * times)


def load(shipped: Closure) -> Any:
    return pickle.loads(shipped.payload)


def dealt(run: LevelRun, batch: int, *values: int) -> list[tuple[int, list[Any]]]:
    """Group, or lines of a sink, of each block that a micro-batch makes."""
    blocks = run.run_source([Chunk(list(values))], 0, MicroBatch(batch))
    return [(block.group, pickle.loads(block.payload)[1]) for block in blocks if block.kind == ELEMENTS]


def test_dealing_depends_on_the_micro_batch_and_the_sender_alone() -> None:
    """Spark does a part of a micro-batch again on a worker that may have done none before it."""
    spread = ExchangeRoute(1, 5, 0, Exchange.REBALANCE, 2, 7)
    printed = SinkRoute(SINK, None, PICKLED, printed=True, exchange=Exchange.REBALANCE, groups=2)

    def opened(subtask: int = 0) -> LevelRun:
        plan = LevelPlan(0, (), head=(spread, printed))
        return LevelRun(plan, JobInfo(), subtask, load, pickle.dumps, pickle.loads)

    kept = opened()
    first = dealt(kept, 0, 1)
    second = dealt(kept, 1, 2, 3)
    assert first == [(0, [1]), (0, ["1> 1"])]
    # small micro-batches do not all begin with the same group
    assert second == [(1, [2]), (0, [3]), (0, ["2> 2", "1> 3"])]
    assert dealt(kept, 1, 2, 3) == dealt(opened(), 1, 2, 3) == second
    assert dealt(opened(1), 0, 1) == [(1, [1]), (0, ["2> 1"])]


def test_what_groups_deal_depends_on_no_group_before() -> None:
    spread = ExchangeRoute(2, 6, 0, Exchange.REBALANCE, 3, 8)
    plan = LevelPlan(1, (operator(5, Mapped(), spread),), channels={(5, 0): (7,)})

    def opened() -> LevelRun:
        return LevelRun(plan, JobInfo(), 0, load, pickle.dumps, pickle.loads)

    def groups(run: LevelRun, group: int) -> list[int]:
        block = Block(1, group, 5, ELEMENTS, 0, 0, pickle.dumps((0, [1], None, None)))
        return [made.group for made in run.run_group(group, GroupStore(), [block], MicroBatch(4))]

    kept = opened()
    assert [groups(kept, group) for group in (0, 2, 1)] == [[1], [0], [2]]
    assert groups(opened(), 1) == [2]


def test_a_partitioner_must_return_a_subtask() -> None:
    def everything_to_seven(key: Any, subtasks: int) -> int:
        return 7

    partitioner = closure(Partitioning(everything_to_seven))
    route = ExchangeRoute(1, 5, 0, Exchange.CUSTOM, 3, 7, partitioner=partitioner)
    source = LevelPlan(0, (operator(1, Mapped(), route),), head=(ChainedRoute(1, 0),))
    job = InMemoryLevels([source], [LevelPlan(1, ())], groups=3)
    with pytest.raises(InvalidKey, match="returned 7; it must be a whole number from 0 to 2"):
        job.run_batch({0: [[Chunk([1])]]})


def test_an_operator_chained_to_a_keyed_one_advances_in_every_group() -> None:
    """A function behind a keyed one has fewer subtasks than there are key groups."""
    chained = replace(operator(6, Advanced(), SinkRoute(SINK)), parallelism=1, groups=4)
    source = LevelPlan(0, (operator(1, Late(), exchange()),), head=(ChainedRoute(1, 0),))
    level = LevelPlan(
        1, (operator(5, Counter(), ChainedRoute(6, 0), stateful=True), chained), channels={(5, 0): (7,)}
    )
    job = InMemoryLevels([source], [level])
    job.run_batch({0: [[Chunk([10, 20, 30])]]})
    assert sorted(job.sinks[SINK]) == [29] * 4


@dataclass
class Advanced:
    """Emits each watermark."""

    def build(self) -> Any:
        return AdvancedOperator()


class AdvancedOperator(OperatorBase):
    def on_watermark(self, watermark_ms: int, output: Output) -> None:
        output.emit(Chunk([watermark_ms]))


def test_channels_that_speak_in_different_batches_advance_together() -> None:
    """``union(…).rebalance()``: a level without functions that keep state remembers watermarks."""
    routes = [ExchangeRoute(1, 5, 0, Exchange.REBALANCE, 2, channel) for channel in (7, 8)]
    sources = [
        LevelPlan(0, (operator(1, Late(), route),), head=(ChainedRoute(1, 0),)) for route in routes
    ]
    level = LevelPlan(1, (operator(5, Advanced(), SinkRoute(SINK)),), channels={(5, 0): (7, 8)})
    assert level.stateful
    job = InMemoryLevels(sources, [level], groups=2)
    job.run_batch({0: [[Chunk([10])]]})
    job.run_batch({1: [[Chunk([20])]]})
    assert job.sinks[SINK] == [9, 9]


@dataclass
class Clocked:
    """Registers the value as a processing timer."""

    def build(self) -> Any:
        return ClockedOperator()


class ClockedOperator(OperatorBase):
    context: OperatorContext

    def open(self, context: OperatorContext) -> None:
        self.context = context

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        assert chunk.keys is not None and self.context.timers is not None
        for key, value in zip(chunk.keys, chunk.values, strict=True):
            self.context.timers.register_processing_time(value, key)
        output.emit(chunk)

    def on_processing_timer(self, timestamp_ms: int, key: Any, namespace: Any, output: Output) -> None:
        output.emit(Chunk([("timer", timestamp_ms)]))


def test_a_processing_timer_for_a_time_that_is_past_fires_at_once() -> None:
    source = LevelPlan(0, (), head=(replace(exchange(), groups=1),))
    level = LevelPlan(1, (operator(5, Clocked(), SinkRoute(SINK), stateful=True),), channels={(5, 0): (7,)})
    job = InMemoryLevels([source], [level], 1)
    job.run_batch({0: [[Chunk([3, 12])]]}, now_ms=10)
    assert job.sinks[SINK] == [3, 12, ("timer", 3)]
    job.run_batch({0: [[Chunk([13])]]}, now_ms=12)
    assert job.sinks[SINK][3:] == [("timer", 12), 13]


def first_or_last(key: int, subtasks: int) -> int:
    return 0 if key < 25 else subtasks - 1


@pytest.mark.parametrize(
    ("exchange_to_sink", "lines"),
    [
        (Exchange.FORWARD, ["1> 10", "1> 20", "1> 30", "2> 40"]),
        # each sender begins with its own number
        (Exchange.REBALANCE, ["1> 10", "2> 20", "3> 30", "2> 40"]),
        (Exchange.GLOBAL, ["1> 10", "1> 20", "1> 30", "1> 40"]),
        (Exchange.BROADCAST, [f"{subtask}> {n}" for subtask in (1, 2, 3) for n in (10, 20, 30, 40)]),
        (Exchange.CUSTOM, ["1> 10", "1> 20", "3> 30", "3> 40"]),
    ],
)
def test_lines_name_the_subtask_of_the_sink_that_flink_s_would(
    exchange_to_sink: Exchange, lines: list[str]
) -> None:
    by = closure(Partitioning(first_or_last)) if exchange_to_sink is Exchange.CUSTOM else None
    sink = SinkRoute(
        SINK, None, PICKLED, printed=True, exchange=exchange_to_sink, groups=3, partitioner=by
    )
    mapped = replace(operator(1, Mapped(), sink), parallelism=3, groups=3)
    job = InMemoryLevels([LevelPlan(0, (mapped,), head=(ChainedRoute(1, 0),))], [])
    job.run_batch({0: [[Chunk([1, 2]), Chunk([3])], [Chunk([4])]]})
    if exchange_to_sink is not Exchange.BROADCAST:
        assert job.sinks[SINK] == lines
    assert sorted(job.sinks[SINK]) == sorted(lines)


def test_lines_behind_keys_name_the_subtask_of_their_group() -> None:
    source = LevelPlan(0, (), head=(replace(exchange(), groups=4, selector=None),))
    sink = SinkRoute(SINK, None, PICKLED, printed=True, identifier="n", groups=2)
    keyed = replace(operator(5, Counter(), sink, stateful=True), keyed=True, parallelism=2, groups=4)
    job = InMemoryLevels([source], [LevelPlan(1, (keyed,), channels={(5, 0): (7,)})])
    job.run_batch({0: [[Chunk(list(range(20)))]]})
    assert sorted(job.sinks[SINK]) == sorted(f"n:{key_group(n, 4) // 2 + 1}> ({n}, 1)" for n in range(20))


def test_forward_behind_keys_leads_to_the_subtask_of_their_group() -> None:
    """Wherever Spark has put the group."""
    source = LevelPlan(0, (), head=(replace(exchange(), groups=4, selector=None),))
    forward = ExchangeRoute(2, 6, 0, Exchange.FORWARD, 2, 8)
    keyed = replace(operator(5, Counter(), forward, stateful=True), keyed=True, parallelism=2, groups=4)
    sink = SinkRoute(SINK, None, PICKLED, printed=True, identifier="n", groups=2)
    behind = replace(operator(6, Same(), sink), parallelism=2, groups=2)
    levels = [
        LevelPlan(1, (keyed,), channels={(5, 0): (7,)}),
        LevelPlan(2, (behind,), channels={(6, 0): (8,)}),
    ]
    job = InMemoryLevels([source], levels)
    job.run_batch({0: [[Chunk(list(range(20)))]]})
    assert sorted(job.sinks[SINK]) == sorted(f"n:{key_group(n, 4) // 2 + 1}> ({n}, 1)" for n in range(20))


def test_partitions_of_a_source_are_dealt_to_the_subtasks_there_are() -> None:
    sink = SinkRoute(SINK, None, PICKLED, printed=True, groups=2)
    forward = ExchangeRoute(1, 5, 0, Exchange.FORWARD, 2, 7)
    same = replace(operator(1, Same(), forward), parallelism=2, groups=2)
    behind = replace(operator(5, Same(), sink), parallelism=2, groups=2)
    source = LevelPlan(0, (same,), head=(ChainedRoute(1, 0),))
    job = InMemoryLevels([source], [LevelPlan(1, (behind,), channels={(5, 0): (7,)})])
    job.run_batch({0: [[Chunk([number])] for number in range(6)]})
    assert sorted(job.sinks[SINK]) == ["1> 0", "1> 2", "1> 4", "2> 1", "2> 3", "2> 5"]


@dataclass
class Same:
    """Passes on what it gets."""

    def build(self) -> Any:
        return SameOperator()


class SameOperator(OperatorBase):
    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        output.emit(Chunk(chunk.values, chunk.timestamps))


def test_elements_for_other_sinks_stay_as_they_are() -> None:
    for kind, times in ((Exchange.FORWARD, 1), (Exchange.BROADCAST, 2)):
        source = LevelPlan(0, (), head=(SinkRoute(SINK, exchange=kind, groups=2),))
        job = InMemoryLevels([source], [])
        job.run_batch({0: [[Chunk([1, 2])]]})
        assert job.sinks[SINK] == [1, 2] * times


class SizesOperator(OperatorBase):
    """Emits how many elements each chunk has."""

    def process(self, input_index: int, chunk: Chunk, output: Output) -> None:
        assert chunk.keys is None or chunk.keys == [mod3(value) for value in chunk.values]
        output.emit(Chunk([(input_index, len(chunk.values), chunk.timestamps)]))


@dataclass
class Sizes:
    def build(self) -> Any:
        return SizesOperator()


def test_what_several_senders_have_for_one_input_is_one_chunk() -> None:
    first = LevelPlan(0, (), head=(replace(exchange(), groups=1),))
    second = LevelPlan(0, (), head=(replace(exchange(), groups=1, input_index=1, channel=8),))
    sizes = operator(5, Sizes(), SinkRoute(SINK))
    level = LevelPlan(1, (sizes,), channels={(5, 0): (7,), (5, 1): (8,)})
    job = InMemoryLevels([first, second], [level], groups=1)
    job.run_batch({0: [[Chunk([1, 2])], [Chunk([3], [30])]], 1: [[Chunk([4])], [Chunk([5, 6, 7])]]})
    assert job.sinks[SINK] == [(0, 3, [None, None, 30]), (1, 4, None)]


class Rules(KeyedBroadcastProcessFunction[Any, Any, Any, Any]):
    """Rules that are for keys are applied to all that were seen; all rules are reported."""

    SEEN = ValueStateDescriptor("seen")

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(self.SEEN)

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.seen.update(value)

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        yield "rule", value
        if value == "keys":
            found: list[Any] = []
            ctx.apply_to_keyed_state(self.SEEN, lambda key, state: found.append((key, state.value())))
            yield from found
            yield "done"


def test_results_of_a_broadcast_element_come_once_per_subtask_unless_they_are_about_keys() -> None:
    elements = LevelPlan(0, (), head=(exchange(),))
    rules = LevelPlan(0, (), head=(replace(exchange(Exchange.BROADCAST), input_index=1, channel=8),))
    keyed = replace(
        operator(
            5,
            KeyedBroadcastProcessDefinition(Rules()),
            SinkRoute(SINK),
            SinkRoute(OTHER_SINK, None, PICKLED, printed=True, groups=2),
            stateful=True,
        ),
        keyed=True,
        parallelism=2,
        groups=4,
        broadcast_inputs=frozenset([1]),
    )
    job = InMemoryLevels([elements, rules], [LevelPlan(1, (keyed,), channels={(5, 0): (7,), (5, 1): (8,)})])
    job.run_batch({0: [[Chunk([0, 1, 2])]]})
    # its neighbours in the block are no rules for keys
    job.run_batch({1: [[Chunk(["before", "keys", "after"])]]})
    groups = {key_group(key, 4) for key in range(3)}
    # the first ones of both subtasks
    speaking = {0, 2}
    assert groups - speaking, "some keys are in groups that do not speak for a subtask"
    found = job.sinks[SINK]
    assert sorted(r[1] for r in found if r[0] == "rule") == sorted(["before", "keys", "after"] * 2)
    assert sorted(r for r in found if r[0] in (0, 1, 2)) == [(0, 0), (1, 1), (2, 2)]
    assert found.count("done") == len(groups | speaking)
    assert sorted(line for line in job.sinks[OTHER_SINK] if "before" in line) == [
        "1> ('rule', 'before')", "2> ('rule', 'before')"
    ]  # fmt: skip
