"""A level as the Spark side runs it: blocks and watermarks in, blocks, sinks and watermarks out."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

import cloudpickle
import pytest

from yarnflow.errors import InvalidKey, InvariantViolated, UserCodeError
from yarnflow.operators.elements import MAX_WATERMARK_MS, Chunk
from yarnflow.operators.functions.elements import MapFunction
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.functions.process import KeyedContext, KeyedProcessFunction, TimerContext
from yarnflow.operators.functions.runtime_context import RuntimeContext
from yarnflow.operators.process.elementwise import FlatMapDefinition, MapDefinition
from yarnflow.operators.process.operator import WatermarkStatus
from yarnflow.operators.process.process_elements import KeyedProcessDefinition, ProcessDefinition
from yarnflow.operators.state.descriptors import ValueStateDescriptor
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.task.blocks import Block, decode
from yarnflow.operators.task.description import (
    Broadcast,
    ByKey,
    ByPartitioner,
    InputDescription,
    LevelDescription,
    OperatorDescription,
    Partitioning,
    RoundRobin,
    ToExchange,
    ToFirst,
    ToOperator,
    ToSame,
    ToSink,
)
from yarnflow.operators.task.key_groups import key_group
from yarnflow.operators.task.level_run import LevelOutput, LevelRun
from yarnflow.operators.task.watermarks import EdgeWatermark

GROUPS = 4


class CountThenTell(KeyedProcessFunction):
    """Counts per key; emits the count ten ms after each element."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        self.told = runtime_context.get_metrics_group().counter("told")

    def process_element(self, value: Any, ctx: KeyedContext) -> None:
        self.count.update((self.count.value() or 0) + 1)
        time = ctx.timestamp()
        assert time is not None
        ctx.timer_service().register_event_time_timer(time + 10)

    def on_timer(self, timestamp: int, ctx: TimerContext) -> Iterator[Any]:
        self.told.inc()
        yield ctx.get_current_key(), self.count.value(), ctx.timer_service().current_watermark()


def source_level(partitioning: Partitioning, groups: int = GROUPS) -> LevelDescription:
    to_later = ToExchange("to-count", partitioning, groups)
    return LevelDescription(
        (OperatorDescription("source", "Source", FlatMapDefinition(lambda x: [x]), (to_later,), groups=2),),
        (InputDescription("from-source", "source"),),
    )


COUNT_LEVEL = LevelDescription(
    (
        OperatorDescription(
            "count", "Count", KeyedProcessDefinition(CountThenTell()), (ToOperator("format"),),
            keyed=True, parallelism=2, groups=GROUPS,
        ),
        OperatorDescription("format", "Format", MapDefinition(str), (ToSink("out"),), groups=GROUPS),
    ),
    (InputDescription("to-count", "count", senders=2),),
)  # fmt: skip


def started(level: LevelDescription) -> LevelRun:
    run = LevelRun(cloudpickle.loads(cloudpickle.dumps(level)), dumps_by_value=cloudpickle.dumps)
    run.open()
    return run


def sent(run: LevelRun, values: Iterable[Any], group: int = 0, timed: bool = True) -> LevelOutput:
    values = list(values)
    run.begin(group, GroupStore(), 0)
    run.process("from-source", Chunk(values, list(range(len(values))) if timed else None))
    run.advance([EdgeWatermark("from-source", 0, WatermarkStatus(7))])
    return run.finish()


def told(sender: int, watermark_ms: int, idle: bool = False) -> EdgeWatermark:
    return EdgeWatermark("to-count", sender, WatermarkStatus(watermark_ms, idle))


def test_elements_go_to_the_group_of_their_key_with_key_and_time() -> None:
    output = sent(started(source_level(ByKey(lambda word: word[0]))), ["apple", "bean", "avocado"])
    found = {block.group: decode(block.payload) for block in output.blocks}
    assert found[key_group("a", GROUPS)].values[0] == "apple"
    everything = [
        (key, value, time)
        for chunk in found.values()
        for key, value, time in zip(chunk.keys or (), chunk.values, chunk.timestamps or (), strict=True)
    ]
    assert sorted(everything) == [("a", "apple", 0), ("a", "avocado", 2), ("b", "bean", 1)]
    assert output.watermarks == [EdgeWatermark("to-count", 0, WatermarkStatus(7))]
    assert output.elements == {"source": (3, 3)}


def test_elements_without_time_have_none_behind_the_exchange() -> None:
    (block,) = sent(started(source_level(ToFirst())), ["a", "b"], timed=False).blocks
    assert decode(block.payload) == Chunk(["a", "b"])


@pytest.mark.parametrize(
    "partitioning, expected",
    [
        (ToFirst(), {0: [0, 1, 2, 3, 4, 5]}),
        (ToSame(), {1: [0, 1, 2, 3, 4, 5]}),
        (RoundRobin(), {1: [0, 4], 2: [1, 5], 3: [2], 0: [3]}),
        (Broadcast(), {group: [0, 1, 2, 3, 4, 5] for group in range(GROUPS)}),
        (ByPartitioner(lambda key, n: (key + 1) % n, lambda x: x), {1: [0, 4], 2: [1, 5], 3: [2], 0: [3]}),
    ],
)
def test_partitionings(partitioning: Partitioning, expected: dict[int, list[int]]) -> None:
    output = sent(started(source_level(partitioning)), range(6), group=1)
    assert {block.group: decode(block.payload).values for block in output.blocks} == expected
    assert {block.sender for block in output.blocks} == {1}
    assert [block.sequence for block in output.blocks] == list(range(1, len(output.blocks) + 1))


def test_many_elements_leave_in_several_blocks_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yarnflow.operators.task.exchange.BUFFERED_ELEMENTS", 10)
    run = started(source_level(ToFirst()))
    run.begin(0, GroupStore(), 0)
    for start in range(0, 100, 5):
        run.process("from-source", Chunk(list(range(start, start + 5))))
    blocks = run.finish().blocks
    assert len(blocks) == 10
    assert [value for block in blocks for value in decode(block.payload).values] == list(range(100))


def test_a_partitioner_out_of_range_is_named() -> None:
    run = started(source_level(ByPartitioner(lambda key, n: n, lambda x: x)))
    with pytest.raises(UserCodeError, match="operator 'Source' returned 4 for the key 5; .* from 0 to 3"):
        sent(run, [5])


def test_an_unhashable_key_is_named() -> None:
    with pytest.raises(InvalidKey, match="behind operator 'Source': list cannot be a key.*use a tuple"):
        sent(started(source_level(ByKey(lambda x: [x]))), [1])


def test_a_key_without_a_stable_hash_is_named() -> None:
    with pytest.raises(InvalidKey, match="behind operator 'Source': a object cannot be a key"):
        sent(started(source_level(ByKey(lambda x: object()))), [1])


def test_a_failing_key_selector_names_its_element() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        sent(started(source_level(ByKey(lambda x: 1 / x))), [1, 0])
    assert caught.value.__notes__ == ["operator 'Source': key selector, element 0"]


def keyed_block(sequence: int, *elements: tuple[str, int], sender: int = 0) -> Block:
    keys = [key for key, _ in elements]
    parts = (keys, [time for _, time in elements], keys)
    return Block("to-count", 0, sender, sequence, len(keys), pickle.dumps(parts))


def test_timers_wait_for_the_watermark_of_all_senders() -> None:
    run, store = started(COUNT_LEVEL), GroupStore()
    output = run.run(0, store, [keyed_block(1, ("a", 5), ("b", 30))], [told(0, 100)], 0)
    assert output.sinks == {} and output.elements == {"count": (2, 0), "format": (0, 0)}
    output = run.run(0, store, [keyed_block(2, ("a", 7))], [told(1, 20)], 0)
    # both timers of "a" see its state at the end of the batch and the new watermark
    assert output.sinks == {"out": Chunk(["('a', 2, 20)", "('a', 2, 20)"], [15, 17])}
    assert run.run(0, store, [], [], 0).sinks == {}
    assert run.run(0, store, [], [told(1, 0, idle=True)], 0).sinks == {"out": Chunk(["('b', 1, 100)"], [40])}
    assert run.metrics() == {"count": {"told": 3}}


def test_a_late_element_sets_a_timer_that_fires_with_the_next_watermark() -> None:
    run, store = started(COUNT_LEVEL), GroupStore()
    run.run(0, store, [], [told(0, 100), told(1, 100)], 0)
    assert run.run(0, store, [keyed_block(1, ("a", 1))], [told(0, 100)], 0).sinks == {}
    output = run.run(0, store, [], [told(0, 101), told(1, 101)], 0)
    assert output.sinks["out"].timestamps == [11]


def test_another_worker_goes_on_where_the_last_commit_ended() -> None:
    first, second, store = started(COUNT_LEVEL), started(COUNT_LEVEL), GroupStore()
    first.run(0, store, [keyed_block(1, ("a", 5))], [told(0, 100)], 0)
    committed = pickle.dumps(store.changes())
    # an attempt that failed: its store is thrown away
    first.run(0, store, [keyed_block(1, ("a", 6))], [told(1, 100)], 0)
    again = GroupStore.load(None, [pickle.loads(committed)])
    output = second.run(0, again, [keyed_block(1, ("a", 6))], [told(1, MAX_WATERMARK_MS)], 0)
    assert output.sinks["out"].values == ["('a', 2, 100)", "('a', 2, 100)"]


def test_groups_do_not_see_each_other() -> None:
    run, stores = started(COUNT_LEVEL), [GroupStore(), GroupStore()]
    for group in (0, 1):
        run.run(group, stores[group], [keyed_block(1, ("a", 5))], [], 0)
    for group in (0, 1):
        output = run.run(group, stores[group], [], [told(0, 50), told(1, 50)], 0)
        assert output.sinks["out"].values == ["('a', 1, 50)"]


def test_blocks_are_processed_in_the_order_of_sender_and_sequence() -> None:
    level = LevelDescription(
        (OperatorDescription("only", "Only", MapDefinition(str.upper), (ToSink("out"),)),),
        (InputDescription("to-count", "only", senders=2),),
    )
    blocks = [keyed_block(2, ("d", 0), sender=1), keyed_block(10, ("b", 0)), keyed_block(9, ("a", 0)),
              keyed_block(1, ("c", 0), sender=1)]  # fmt: skip
    assert started(level).run(0, GroupStore(), blocks, [], 0).sinks["out"].values == ["A", "B", "C", "D"]


def test_side_outputs_go_their_own_way() -> None:
    class Sort:
        def process_element(self, value: int, ctx: Any) -> Iterator[Any]:
            yield (OutputTag("odd"), value) if value % 2 else value
            yield OutputTag("nobody reads it"), value

    level = LevelDescription(
        (
            OperatorDescription(
                "sort", "Sort", ProcessDefinition(Sort(), True), (ToSink("even"),),
                {"odd": (ToSink("odd"), ToOperator("negative"))},
            ),
            OperatorDescription("negative", "Negative", MapDefinition(lambda x: -x), (ToSink("negative"),)),
        ),
        (InputDescription("from-source", "sort"),),
    )  # fmt: skip
    output = sent(started(level), range(4))
    assert {name: (chunk.values, chunk.timestamps) for name, chunk in output.sinks.items()} == {
        "even": ([0, 2], [0, 2]), "odd": ([1, 3], [1, 3]), "negative": ([-1, -3], [1, 3])
    }  # fmt: skip
    assert output.elements["sort"] == (4, 8)


def test_a_failed_run_leaves_nothing_behind() -> None:
    level = LevelDescription(
        (OperatorDescription("parse", "Parse", MapDefinition(int), (ToSink("out"),)),),
        (InputDescription("from-source", "parse"),),
    )
    run = started(level)
    run.begin(0, GroupStore(), 0)
    run.process("from-source", Chunk(["1"]))
    with pytest.raises(ValueError, match="invalid literal") as caught:
        run.process("from-source", Chunk(["2", "x"]))
    assert caught.value.__notes__ == ["operator 'Parse': element 'x'"]
    assert sent(run, ["3"]).sinks["out"].values == [3]


def test_functions_are_opened_with_their_context_and_closed() -> None:
    calls: list[Any] = []

    class Tells(MapFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            calls.append(runtime_context.get_job_parameter("name", "?"))
            self.context = runtime_context

        def map(self, value: Any) -> Any:
            return self.context.get_task_name_with_subtasks()

        def close(self) -> None:
            calls.append("closed")

    operator = OperatorDescription(
        "tells", "Tells", MapDefinition(Tells()), (ToSink("out"),), parallelism=2, groups=4
    )
    level = LevelDescription((operator,), (InputDescription("from-source", "tells"),))
    run = LevelRun(level, job_parameters={"name": "value"})
    run.open()
    assert sent(run, [0], group=3).sinks["out"].values == ["Tells (2/2)"]
    run.close()
    assert calls == ["value", "closed"]


def test_elements_of_local_classes_travel_by_value() -> None:
    class Local:
        def __init__(self, number: int) -> None:
            self.number = number

    run = started(source_level(ToFirst()))
    (block,) = sent(run, [Local(1), Local(2)]).blocks
    assert [value.number for value in decode(block.payload).values] == [1, 2]


def test_elements_that_cannot_travel_are_named() -> None:
    run = LevelRun(source_level(ToFirst()))
    run.open()
    with pytest.raises(UserCodeError, match="operator 'Source': its results cannot be pickled"):
        sent(run, [lambda: 0])


@pytest.mark.parametrize(
    "operators, edges, said",
    [
        ((OperatorDescription("a", "A", MapDefinition(str), (ToOperator("b"),)),), (), "no operator 'b'"),
        ((), (InputDescription("edge", "b"),), "no operator 'b'"),
        (
            (
                OperatorDescription("b", "B", MapDefinition(str)),
                OperatorDescription("a", "A", MapDefinition(str), (ToOperator("b"),)),
            ),
            (),
            "'b' stands before 'a'",
        ),
    ],
)
def test_a_level_that_is_no_level_is_refused(
    operators: tuple[OperatorDescription, ...], edges: tuple[InputDescription, ...], said: str
) -> None:
    with pytest.raises(InvariantViolated, match=said):
        LevelRun(LevelDescription(operators, edges))
