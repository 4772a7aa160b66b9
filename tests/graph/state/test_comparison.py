"""Which changes of a program its state survives, and what is said of the others."""

from __future__ import annotations

import typing
from dataclasses import replace

import pytest

from tests.graph import graphs as g
from yarnflow.core.checkpoint.program_shape import FieldShape, ProgramShape
from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.messages import ProgramKind
from yarnflow.graph import operators as o
from yarnflow.graph.connectors import elasticsearch, kafka, messages, python, rabbitmq, redis, sinks, sources
from yarnflow.graph.element_schema import element_schema
from yarnflow.graph.generation.chaining import create_job_graph
from yarnflow.graph.job_graph import JobGraph, ShipStrategy
from yarnflow.graph.schema import Field, Schema
from yarnflow.graph.state.comparison import differences
from yarnflow.graph.state.shape import shape_of
from yarnflow.graph.stream_graph import GraphSettings, StreamGraph, Transformation
from yarnflow.graph.type_info import PICKLED, Types
from yarnflow.spark.translate.query_groups import query_groups

FILES = sources.FileSource("/in", "csv", g.SCHEMA, bounded=False)
OTHER_KEY = o.Key(("a + 1",), ("a",))
OTHER_AGGREGATE = o.RunningAggregate(g.KEY, ("max(a) AS b",))


def job(
    *operators: o.Operator, uids: typing.Mapping[int, str] | None = None, parallelism: int = 2
) -> JobGraph:
    """A straight line, position → uid."""
    program = g.Program()
    for position, made in enumerate(program.chain(*operators)):
        made.uid = (uids or {}).get(position, "")
    return built(program, parallelism)


def built(program: g.Program, parallelism: int = 2) -> JobGraph:
    """Not validated: what cannot run has a shape as well."""
    graph = StreamGraph(GraphSettings(parallelism=parallelism))
    for transformation in program.transformations:
        graph.add(transformation)
    return create_job_graph(graph, JobId("a" * 32))


def shape(*operators: o.Operator, **more: typing.Any) -> ProgramShape:
    return shape_of(job(*operators, **more))


def only(saved: ProgramShape, program: ProgramShape) -> str:
    """The one sentence."""
    found = differences(saved, program)
    assert len(found) == 1, found
    assert "--restore none" in found[0] and "\n" not in found[0]
    return found[0]


UIDS = {0: "in", 1: "sum", 2: "out"}
SUM = shape(FILES, g.RUNNING, g.PRINT, uids=UIDS)
WINDOWS = shape(FILES, g.WINDOWED, g.PRINT, uids=UIDS)


def test_what_a_shape_says() -> None:
    (query,) = SUM.queries
    (source,), (operator,) = query.sources, query.operators
    assert (query.name, query.uid, SUM.partitions, SUM.kind) == ("sum", "sum", 2, "GRAPH")
    assert (source.kind, source.uid, source.location, source.bounded) == ("file", "in", "/in", False)
    assert operator.kind == "running aggregate"
    assert (operator.key, operator.state) == (("a AS a",), ("sum(a) AS b",))
    assert operator.key_schema == (FieldShape("a", "int"),)
    assert WINDOWS.queries[0].operators[0].window == "tumbling, size 1000 ms"


def test_it_travels_as_json() -> None:
    assert from_json(ProgramShape, to_json(WINDOWS)) == WINDOWS


def test_the_same_program_fits_whatever_its_job_is_called() -> None:
    again = replace(job(FILES, g.RUNNING, g.PRINT, uids=UIDS), job_id=JobId("b" * 32), name="other")
    assert shape_of(again) == SUM and differences(SUM, shape_of(again)) == ()


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(shape(FILES, g.NATIVE, g.RUNNING, g.PRINT, uids={0: "in", 2: "sum"}), id="operator"),
        pytest.param(shape(FILES, g.RUNNING, g.PYTHON, g.PRINT, uids=UIDS), id="function"),
        pytest.param(shape(FILES, g.RUNNING, sinks.FileSink("/out", "csv"), uids=UIDS), id="sink"),
        pytest.param(
            shape(replace(FILES, path="/elsewhere", bounded=True), g.RUNNING, g.PRINT, uids=UIDS), id="path"
        ),
        pytest.param(
            shape(FILES, replace(g.RUNNING, aggregates=("sum(a)\n  AS b",)), g.PRINT, uids=UIDS), id="layout"
        ),
    ],
)
def test_state_survives(program: ProgramShape) -> None:
    assert differences(SUM, program) == ()


def test_without_uids_the_place_counts() -> None:
    saved = shape(FILES, g.RUNNING, g.PRINT)
    assert differences(saved, shape(FILES, g.RUNNING, g.PRINT)) == ()
    text = only(saved, shape(FILES, g.NATIVE, g.RUNNING, g.PRINT))
    assert "RunningAggregate (job.py:2)" in text and "no uid" in text and "as it was" in text


def test_a_missing_uid_is_named() -> None:
    text = only(SUM, shape(FILES, g.RUNNING, g.PRINT, uids={0: "in", 1: "total"}))
    assert "the uid 'sum'" in text and "bring that operator back" in text


def test_a_source_without_a_uid_may_be_known_by_its_place_in_the_query() -> None:
    saved = shape(FILES, g.RUNNING, g.PRINT, uids={1: "sum"})
    assert differences(saved, SUM) == ()
    with_map = shape(FILES, g.NATIVE, g.RUNNING, g.PRINT, uids={2: "sum"})
    assert differences(saved, with_map) == ()


@pytest.mark.parametrize(
    ("operator", "part"),
    [
        (g.REDUCE, "was a running aggregate and is a reduce"),
        (replace(g.RUNNING, key=OTHER_KEY), "was keyed by a AS a and is keyed by a + 1 AS a"),
        (OTHER_AGGREGATE, "kept sum(a) AS b and keeps max(a) AS b"),
    ],
)
def test_a_changed_operator(operator: o.Operator, part: str) -> None:
    text = only(SUM, shape(FILES, operator, g.PRINT, uids=UIDS))
    assert part in text and f"'{type(operator).__name__}' (uid 'sum', job.py:2)" in text


def test_a_changed_window() -> None:
    wider = replace(g.WINDOWED, window=replace(g.WINDOW, size_ms=2_000))
    text = only(WINDOWS, shape(FILES, wider, g.PRINT, uids=UIDS))
    assert "had the window tumbling, size 1000 ms and has the window tumbling, size 2000 ms" in text


def test_windows_do_not_survive_that_input_ends() -> None:
    text = only(WINDOWS, shape(replace(FILES, bounded=True), g.WINDOWED, g.PRINT, uids=UIDS))
    assert "was read for ever, and is read to an end" in text


def test_another_kind_of_source() -> None:
    text = only(SUM, shape(g.SOURCE, g.RUNNING, g.PRINT, uids=UIDS))
    assert "was a file source and is a rate source" in text and "uid 'in'" in text


def test_another_parallelism_is_no_difference() -> None:
    assert differences(SUM, shape(FILES, g.RUNNING, g.PRINT, uids=UIDS, parallelism=3)) == ()


def typed(*names_and_types: tuple[str, str | None]) -> ProgramShape:
    """A reduce over records of these fields."""
    graph = job(FILES, g.REDUCE, g.PRINT, uids=UIDS)
    schema = Schema(tuple(Field(name, kind) for name, kind in names_and_types))
    source, *others = graph.nodes
    return shape_of(replace(graph, nodes=(replace(source, output_schema=schema), *others)))


def test_a_changed_schema() -> None:
    saved = typed(("a", "int"), ("b", "string"))
    text = only(saved, typed(("a", "int"), ("b", "bigint")))
    assert "the state of stateful operator" in text
    assert "had the fields a int, b string and has a int, b bigint" in text
    text = only(saved, typed(("a", "int")))
    assert "has a int:" in text


def test_types_only_spark_knows_are_left_to_it() -> None:
    saved = typed(("a", "int"), ("b", "string"))
    assert differences(saved, typed(("A", "int"), ("b", None))) == ()


# --- several sources, queries -------------------------------------------------------


def union(*uids: str, above: o.Operator = g.RUNNING) -> ProgramShape:
    program = g.Program()
    sources = [uid_of(program.add(FILES), uid) for uid in uids]
    both = program.add(g.UNION, *sources)
    uid_of(program.add(above, both), "sum")
    program.add(g.PRINT, program.transformations[-1])
    return shape_of(built(program))


def uid_of(made: Transformation, uid: str) -> Transformation:
    made.uid = uid
    return made


def test_sources_are_in_the_order_they_are_read() -> None:
    assert [source.uid for source in union("x", "y").queries[0].sources] == ["x", "y"]


def test_a_source_less_a_source_more_another_order() -> None:
    saved = union("x", "y")
    assert "(uid 'y', job.py:2) of query 'sum' is not in the program any more" in only(saved, union("x"))
    assert "(uid 'z', job.py:3) is new in query 'sum'" in only(saved, union("x", "y", "z"))
    assert "were 'x', 'y' and are 'y', 'x'" in only(saved, union("y", "x"))
    gone, new = differences(saved, union("x", "z"))
    assert "uid 'y'" in gone and "uid 'z'" in new


def two_queries(*uids: str) -> ProgramShape:
    program = g.Program()
    source = uid_of(program.add(FILES), "in")
    for uid in uids:
        program.add(g.PRINT, uid_of(program.add(g.RUNNING, source), uid))
    return shape_of(built(program))


def test_a_new_query_starts_empty_and_a_lost_one_is_named() -> None:
    assert differences(two_queries("p"), two_queries("p", "q")) == ()
    assert "the uid 'q'" in only(two_queries("p", "q"), two_queries("p"))


def test_a_diamond_is_read_once() -> None:
    program = g.Program()
    last = program.add(FILES)
    for _ in range(40):  # each node counted once, or this would take for ever
        last = program.add(g.UNION, program.add(g.NATIVE, last), program.add(g.NATIVE, last))
    program.add(g.PRINT, last)
    assert len(shape_of(built(program)).queries[0].sources) == 1


@pytest.mark.parametrize(("sql", "stateful"), [(g.SQL, False), (g.SQL_AGGREGATE, True)])
def test_sql_is_state_if_spark_keeps_some(sql: o.SqlOperator, stateful: bool) -> None:
    saved = shape(FILES, sql, g.PRINT, uids=UIDS)
    assert bool(saved.queries[0].operators) is stateful
    changed = shape(FILES, replace(sql, query=sql.query + " LIMIT 5"), g.PRINT, uids=UIDS)
    assert bool(differences(saved, changed)) is stateful


# --- scripts, and the rest of the package ---------------------------------------------


def test_a_script_is_a_script() -> None:
    script = shape_of(JobGraph(JobId("a" * 32), "s", ProgramKind.SCRIPT))
    assert differences(script, script) == ()
    assert "of a PySpark script and this is a DataStream program" in only(script, SUM)
    assert "of a DataStream program and this is a PySpark script" in only(SUM, script)


@pytest.mark.parametrize("uid", ["sum", "", "a b", ".x", "ä"])
def test_queries_are_called_as_their_directories_are(uid: str) -> None:
    graph = job(FILES, g.NATIVE, g.RUNNING, g.PYTHON, g.PRINT, uids={2: uid})
    assert [q.name for q in shape_of(graph).queries] == [group.name for group in query_groups(graph)]


def test_every_operator_is_known() -> None:
    program = g.Program()
    collection = sources.CollectionSource(g.SCHEMA, b"")
    text = messages.MessageFormat(messages.MessageFormatKind.STRING, Types.STRING())
    topic = kafka.KafkaSource({}, kafka.KafkaOffsets(kafka.KafkaOffsetsKind.EARLIEST), topics=("t",))
    server = rabbitmq.RabbitMqServer("h")
    queue = rabbitmq.RabbitMqSource(server, "q", text)
    own = (
        *(collection, FILES, g.SOURCE, sources.SocketSource("h", 1), sources.SequenceSource(1, 5)),
        *(topic, queue, python.PythonSource(g.CLOSURE, g.SCHEMA)),
    )
    both = program.add(g.UNION, *(program.add(each) for each in own))
    for made in (g.NATIVE, o.FilterExpression("a > 1"), g.PYTHON, g.LOOKUP, g.TIMES, g.SQL_AGGREGATE):
        both = program.add(made, both)
    first = o.DropDuplicates(("a",))
    for keyed in (g.RUNNING, g.REDUCE, g.WINDOWED, g.WINDOW_FUNCTION, first):
        program.add(g.PRINT, program.add(keyed, both))
    for sink in (
        sinks.FileSink("/o", "csv"),
        sinks.ForeachBatchSink(g.CLOSURE),
        kafka.KafkaSink({}, text, topic="t"),
        rabbitmq.RabbitMqSink(server, "q", text),
        redis.RedisSink(redis.RedisServer("h"), redis.RedisCommand.SET, g.CLOSURE),
        elasticsearch.ElasticsearchSink(elasticsearch.ElasticsearchServer(("http://h:9200",)), "i"),
        sinks.SocketSink("h", 1, text),
        sinks.JdbcSink("", ""),
        python.PythonSink(g.CLOSURE),
    ):
        program.add(sink, both)
    partitioned = program.add(g.BY_KEY, program.add(g.PARTITION, program.add(g.ELEMENTS, both)))
    elements = program.add(g.KEYED_ELEMENTS, partitioned)
    program.add(sinks.CollectSink(), program.add(g.LATE, elements))
    program.add(sinks.DiscardSink(), elements)
    used = {type(t.define((g.SCHEMA,))[0]) for t in program.transformations}
    assert used == set(typing.get_args(o.Operator)), "a new operator: does it keep state?"
    queries = shape_of(built(program)).queries
    assert [len(query.sources) for query in queries] == [8] * 7
    assert [len(query.operators) for query in queries] == [2, 2, 2, 2, 2, 1, 2]
    # the side output is routed in the query of its operator
    assert queries[-1].operators[-1].kind == "keyed process"


# --- operators on elements ------------------------------------------------------------


PICKLES = element_schema(PICKLED)


def of_elements(
    program: g.Program, operator: o.ElementOperator, last: Transformation, uid: str = ""
) -> Transformation:
    made = program.add(
        operator, last, strategy=ShipStrategy.HASH, define=lambda schemas: (operator, PICKLES)
    )
    return uid_of(made, uid)


def elements(
    *keyed: str, stateless: int = 0, operator: o.ElementOperator = g.KEYED_ELEMENTS, sources: int = 1
) -> ProgramShape:
    """Keyed operators of these uids behind each other, behind some without state."""
    program = g.Program()
    found = [uid_of(program.add(FILES), f"in{number}") for number in range(sources)]
    last = found[0] if sources == 1 else program.add(g.UNION, *found)
    for _ in range(stateless):
        last = of_elements(program, g.ELEMENTS, last)
    for uid in keyed:
        last = of_elements(program, operator, last, uid)
    program.add(sinks.DiscardSink(), last)
    return shape_of(built(program))


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(elements("a", "b", "c"), id="one more behind"),
        pytest.param(elements("c", "a", "b"), id="one more before"),
        pytest.param(elements("b", "a"), id="another order"),
        pytest.param(elements("a", "b", stateless=2), id="one without state"),
    ],
)
def test_elements_are_known_by_their_uids_wherever_they_stand(program: ProgramShape) -> None:
    assert differences(elements("a", "b"), program) == ()


def test_state_of_elements_is_left_behind_only_where_that_is_asked_for() -> None:
    saved, program = elements("a", "b", "c"), elements("b")
    first, second = differences(saved, program)
    for uid, text in (("a", first), ("c", second)):
        assert f"stateful operator 'ElementOperator' (uid '{uid}', job.py:" in text
        assert "is not in the program any more: bring it back" in text
        assert "leave its state behind (--allow-non-restored-state)" in text
    assert differences(saved, program, allow_non_restored=True) == ()


def test_elements_without_a_uid_are_known_by_their_place() -> None:
    saved = elements("")
    assert differences(saved, elements("")) == ()
    assert "not at the same place, by which it is known without a uid" in only(
        saved, elements("", stateless=1)
    )


def test_what_is_there_must_fit_whatever_is_left_behind() -> None:
    other = replace(g.KEYED_ELEMENTS, kind=o.ElementKind.REDUCE)
    saved, program = elements("a", "b"), elements("b", operator=other)
    (text,) = differences(saved, program, allow_non_restored=True)
    assert "(uid 'b'" in text and "was a keyed process, 128 key groups and is a reduce" in text


def test_a_source_of_elements_is_never_left_behind() -> None:
    for saved, program in ((1, 2), (2, 1)):
        (text,) = differences(
            elements("a", sources=saved), elements("a", sources=program), allow_non_restored=True
        )
        assert "source 'FileSource' (uid 'in1'" in text


def test_queries_that_are_gone_may_be_left_behind() -> None:
    assert differences(two_queries("p", "q"), two_queries("p"), allow_non_restored=True) == ()
    (text,) = differences(two_queries("p", "q"), two_queries("p"))
    assert "leave its state behind (--allow-non-restored-state)" in text


def test_state_that_was_numbered_by_level_is_said_to_be_too_old() -> None:
    program = elements("a", "b")
    (query,) = program.queries
    former = [
        replace(operator, kind=operator.kind.replace(", ", ", level 1, ")) for operator in query.operators
    ]
    saved = replace(program, queries=(replace(query, operators=tuple(former)),))
    assert only(saved, program) == (
        "the state of query 'elements' was written by an earlier development version and cannot be read: "
        "start without state (--restore none)"
    )
