"""Resolving and validating programs."""

from collections.abc import Sequence
from typing import get_args

import pytest

from tests.graph import graphs as g
from yarnflow.errors import ParallelismTooHigh, SchemaError, UnknownField, UnsupportedGraph
from yarnflow.graph import operators as o
from yarnflow.graph.connectors import kafka, messages, python, rabbitmq, sinks, sources
from yarnflow.graph.job_graph import ShipStrategy
from yarnflow.graph.schema import Schema
from yarnflow.graph.stream_graph import GraphSettings, default_max_parallelism
from yarnflow.graph.type_info import Types

FIRST = o.DropDuplicates(("a",), 0)


@pytest.mark.parametrize(
    ("parallelism", "expected"), [
        (1, 128), (85, 128), (86, 256), (128, 256), (171, 256), (172, 512), (30_000, 32768)
    ]
)
def test_default_max_parallelism_is_flinks(parallelism: int, expected: int) -> None:
    assert default_max_parallelism(parallelism) == expected


def test_parallelism_and_its_maximum() -> None:
    program = g.Program()
    source, select, _sink = program.chain(g.SOURCE, g.NATIVE, g.PRINT)
    source.parallelism, select.max_parallelism = 100, 7
    nodes = list(program.build(GraphSettings(parallelism=2)).nodes.values())
    assert [(n.parallelism, n.max_parallelism) for n in nodes] == [(100, 256), (2, 7), (2, 128)]


@pytest.mark.parametrize(("parallelism", "maximum"), [(8, 7), (40_000, None)])
def test_parallelism_above_its_maximum(parallelism: int, maximum: int | None) -> None:
    program = g.Program()
    _, select, _ = program.chain(g.SOURCE, g.NATIVE, g.PRINT)
    select.name, select.parallelism, select.max_parallelism = "Parse", parallelism, maximum
    with pytest.raises(ParallelismTooHigh) as caught:
        program.build()
    assert str(caught.value).startswith(
        f"job.py:2: selectoperator(): parallelism {parallelism} of 'Parse' is above"
    )


def test_operators_of_one_subtask() -> None:
    program = g.Program()
    source, _ = program.chain(g.SOURCE, g.PRINT)
    source.parallel = False
    assert [n.parallelism for n in program.build(GraphSettings(parallelism=4)).nodes.values()] == [1, 4]
    source.parallelism = 2
    with pytest.raises(UnsupportedGraph, match="always has one subtask"):
        program.build()


def test_slot_sharing_groups_are_inherited_when_all_inputs_agree() -> None:
    program = g.Program()
    first, second = program.add(g.SOURCE), program.add(g.SOURCE)
    first.slot_sharing_group = second.slot_sharing_group = "heavy"
    union = program.add(g.UNION, first, second)
    program.add(g.PRINT, union)
    assert {n.slot_sharing_group for n in program.build().nodes.values()} == {"heavy"}
    second.slot_sharing_group = "other"
    groups = [n.slot_sharing_group for n in program.build().nodes.values()]
    assert groups == ["heavy", "other", "default", "default"]


def test_errors_begin_with_the_line_and_keep_their_class() -> None:
    def define(schemas: tuple[Schema, ...]) -> tuple[o.Operator, Schema]:
        raise UnknownField("no field 'x'")

    program = g.Program()
    program.add(g.NATIVE, program.add(g.SOURCE), define=define)
    with pytest.raises(UnknownField, match=r"^job.py:2: selectoperator\(\): no field 'x'$"):
        program.build()


def test_foreign_errors_are_not_dressed_up() -> None:
    def define(schemas: tuple[Schema, ...]) -> tuple[o.Operator, Schema]:
        raise ZeroDivisionError

    program = g.Program()
    program.add(g.SOURCE, define=define)
    with pytest.raises(ZeroDivisionError):
        program.build()


def test_nothing_and_nowhere() -> None:
    with pytest.raises(UnsupportedGraph, match="no operators"):
        g.Program().build()
    with pytest.raises(UnsupportedGraph, match=r"job.py:2: .*its result goes nowhere"):
        g.straight([g.SOURCE, g.NATIVE])


def test_what_functions_give_to_nobody_is_dropped() -> None:
    graph = g.straight([g.SOURCE, g.PYTHON])
    dropped = graph.nodes[3]
    assert isinstance(dropped.operator, sinks.DiscardSink) and dropped.inputs == ((2, ShipStrategy.FORWARD),)
    assert [type(node.operator) for node in g.straight([g.SOURCE, g.PYTHON, g.PRINT]).nodes.values()] == [
        type(g.SOURCE), type(g.PYTHON), type(g.PRINT)
    ]  # fmt: skip


def test_a_uid_is_taken_once() -> None:
    program = g.Program()
    source, sink = program.chain(g.SOURCE, g.PRINT)
    source.uid = sink.uid = "same"
    with pytest.raises(UnsupportedGraph, match=r"job.py:2: .*uid 'same' is taken .*job.py:1"):
        program.build()


@pytest.mark.parametrize(
    "middle",
    [
        [g.RUNNING],
        [g.REDUCE],
        [g.TIMES, g.WINDOWED],
        [g.TIMES, g.PYTHON, g.WINDOWED, g.PYTHON],
        [g.TIMES, g.WINDOWED, g.NATIVE, g.WINDOWED],
        [g.SQL, g.TIMES, g.WINDOW_FUNCTION],
        [g.SQL_AGGREGATE],
        [g.TIMES, FIRST, g.WINDOWED],
        [FIRST, g.NATIVE],
        # a query that does not hand event time on
        [g.TIMES, g.SQL, g.TIMES, g.WINDOWED],
    ],
)
def test_what_spark_can_run(middle: Sequence[o.Operator]) -> None:
    assert len(g.straight([g.SOURCE, *middle, g.PRINT]).nodes) == len(middle) + 2


@pytest.mark.parametrize(
    ("middle", "line", "part"),
    [
        ([g.WINDOWED], 2, "call assign_timestamps_and_watermarks"),
        ([g.RUNNING, g.RUNNING], 3, "after running results is not possible; they come from job.py:2"),
        ([g.TIMES, g.RUNNING, g.WINDOWED], 4, "after running results"),
        ([g.TIMES, g.WINDOWED, g.REDUCE], 4, "running results after a window"),
        ([g.TIMES, g.WINDOWED, g.PYTHON, g.WINDOWED], 5, "job.py:4: pythonoperator() hides the event time"),
        ([g.TIMES, g.WINDOW_FUNCTION, g.WINDOWED], 4, "hides the event time"),
        ([g.TIMES, g.TIMES], 3, "assigned already (job.py:2"),
        ([g.TIMES, g.SQL, g.WINDOWED], 4, "which job.py:3: sqloperator() drops"),
        ([g.RUNNING, g.TIMES], 3, "must be assigned before job.py:2"),
        ([g.SQL_AGGREGATE, g.RUNNING], 3, "after running results"),
        ([g.RUNNING, FIRST], 3, "after running results"),
        ([g.TIMES, FIRST, g.RUNNING], 4, "running results after a window"),
        ([g.TIMES, g.WINDOW_FUNCTION, FIRST], 4, "hides the event time"),
        ([g.RUNNING, g.SQL_AGGREGATE], 3, "after running results"),
    ],
)
def test_what_spark_cannot_run(middle: Sequence[o.Operator], line: int, part: str) -> None:
    with pytest.raises(UnsupportedGraph) as caught:
        g.straight([g.SOURCE, *middle, g.PRINT])
    assert str(caught.value).startswith(f"job.py:{line}: ")
    assert part in str(caught.value)


def test_a_window_needs_the_event_time_of_every_stream_of_a_union() -> None:
    program = g.Program()
    timed = program.chain(g.SOURCE, g.TIMES)[-1]
    other = program.add(g.SOURCE)
    windowed = program.add(g.WINDOWED, program.add(g.UNION, timed, other))
    program.add(g.PRINT, windowed)
    with pytest.raises(UnsupportedGraph, match="event time"):
        program.build()


def test_running_and_windowed_results_do_not_mix() -> None:
    program = g.Program()
    timed = program.chain(g.SOURCE, g.TIMES)[-1]
    union = program.add(g.UNION, program.add(g.RUNNING, timed), program.add(g.WINDOWED, timed))
    program.add(g.PRINT, union)
    with pytest.raises(UnsupportedGraph, match=r"^job.py:5: .*\(job.py:3.*\(job.py:4"):
        program.build()


def test_running_and_windowed_results_of_one_stream_may_go_to_two_sinks() -> None:
    program = g.Program()
    timed = program.chain(g.SOURCE, g.TIMES)[-1]
    for operator in (g.RUNNING, g.WINDOWED):
        program.add(g.PRINT, program.add(operator, timed))
    assert len(program.build().nodes) == 6


def test_schema_errors_of_definitions_are_located() -> None:
    def define(schemas: tuple[Schema, ...]) -> tuple[o.Operator, Schema]:
        raise SchemaError("bad")

    program = g.Program()
    program.add(g.SOURCE, define=define)
    with pytest.raises(SchemaError, match=r"^job.py:1: ratesource\(\): bad"):
        program.build()


def test_every_source_says_whether_it_ends() -> None:
    ends: dict[o.Source, bool] = {
        sources.CollectionSource(g.SCHEMA, b""): True,
        sources.SequenceSource(1, 2): True,
        sources.SocketSource("h", 1): False,
        sources.RateSource(1): False,
        sources.RateSource(1, 5): True,
    }
    own = [python.PythonSource(g.CLOSURE, g.SCHEMA, {}, bounded) for bounded in (True, False)]
    files = [sources.FileSource("/x", "csv", g.SCHEMA, bounded=bounded) for bounded in (True, False)]
    earliest, latest = (
        kafka.KafkaOffsets(kind) for kind in (kafka.KafkaOffsetsKind.EARLIEST, kafka.KafkaOffsetsKind.LATEST)
    )
    topics = [kafka.KafkaSource({}, earliest, stopping, topics=("t",)) for stopping in (latest, None)]
    text = messages.MessageFormat(messages.MessageFormatKind.STRING, Types.STRING())
    queue = rabbitmq.RabbitMqSource(rabbitmq.RabbitMqServer("h"), "q", text)
    assert {type(source) for source in (*ends, *files, *topics, *own, queue)} == set(get_args(o.Source))
    assert not queue.bounded
    assert [source.bounded for source in topics] == [True, False]
    assert {source: source.bounded for source in ends} == ends
    assert [source.bounded for source in files] == [source.bounded for source in own] == [True, False]
