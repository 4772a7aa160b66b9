"""How a program names Kafka sources and sinks."""

from __future__ import annotations

import pytest

from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common import SerializationSchema, SimpleStringSchema, Types, WatermarkStrategy
from yarnflow.api.datastream.connectors import DeliveryGuarantee
from yarnflow.api.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
    KafkaSourceBuilder,
    KafkaTopicPartition,
)
from yarnflow.api.datastream.formats.json import JsonRowDeserializationSchema
from yarnflow.api.datastream.output_tag import OutputTag
from yarnflow.api.executor import use_executor
from yarnflow.errors import SchemaError, UnsupportedCall, UnsupportedGraph
from yarnflow.graph.codec import job_graph_from_json, job_graph_to_json
from yarnflow.graph.connectors import kafka
from yarnflow.graph.connectors.kafka import KafkaOffsetsKind, KafkaReset
from yarnflow.graph.connectors.messages import MALFORMED_MESSAGE
from yarnflow.graph.plan import describe
from yarnflow.testing.kept_graph import KeptGraph

ROW = Types.ROW_NAMED(["n"], [Types.INT()])
IGNORING = JsonRowDeserializationSchema.builder().type_info(ROW).ignore_parse_errors().build()
COMMITTED = KafkaOffsetsInitializer.committed_offsets()


def builder() -> KafkaSourceBuilder:
    made = KafkaSource.builder().set_bootstrap_servers("h:9092")
    return made.set_value_only_deserializer(SimpleStringSchema())


def malformed(source: KafkaSourceBuilder) -> KafkaSourceBuilder:
    return source.set_topics("a").set_malformed_output(OutputTag("bad"))


def described(source: KafkaSourceBuilder) -> kafka.KafkaSource:
    found, _ = source.build().operator()
    assert isinstance(found, kafka.KafkaSource)
    return found


def test_a_source_of_pyflinks_documentation() -> None:
    found = described(
        builder()
        .set_topics("a", "b")
        .set_group_id("g")
        .set_client_id_prefix("c")
        .set_starting_offsets(KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.EARLIEST))
        .set_properties({"fetch.min.bytes": "2", "partition.discovery.interval.ms": "10000"})
    )
    assert found.topics == ("a", "b") and not found.bounded
    assert found.properties == {
        "bootstrap.servers": "h:9092",
        "group.id": "g",
        "client.id": "c",
        "fetch.min.bytes": "2",
    }
    assert (found.starting.kind, found.starting.reset) == (KafkaOffsetsKind.COMMITTED, KafkaReset.EARLIEST)


def test_partitions_offsets_and_an_end() -> None:
    at = {KafkaTopicPartition("t", 1): 5, KafkaTopicPartition("t", 0): 3}
    found = described(
        builder()
        .set_partitions(set(at))
        .set_starting_offsets(KafkaOffsetsInitializer.offsets(at))
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_option("maxOffsetsPerTrigger", 10)
    )
    assert found.partitions == (("t", 0), ("t", 1))
    assert found.starting.offsets == (("t", 0, 3), ("t", 1, 5)) and found.bounded
    assert found.options == {"maxOffsetsPerTrigger": "10"}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (lambda: KafkaSource.builder(), "needs set_bootstrap_servers"),
        (builder, "needs set_topics"),
        (lambda: builder().set_topics("a").set_topic_pattern("b"), "once"),
        (lambda: builder().set_topics(), "reads nothing"),
        (
            lambda: KafkaSource.builder().set_bootstrap_servers("h").set_topics("a"),
            "needs set_value_only_deserializer",
        ),
        (lambda: builder().set_topics("a").set_columns(), "leaves messages as they are"),
        (
            lambda: builder().set_topics("a").set_starting_offsets(COMMITTED),
            "needs set_group_id",
        ),
        (lambda: builder().set_bounded(KafkaOffsetsInitializer.earliest()), "reads nothing"),
        (
            lambda: malformed(builder()).set_value_only_deserializer(IGNORING),
            r"leave out ignore_parse_errors\(\)",
        ),
        (
            lambda: malformed(KafkaSource.builder().set_bootstrap_servers("h").set_columns()),
            r"leave out set_columns\(\)",
        ),
        (lambda: builder().set_topics("a").set_option("subscribe", "b"), "'subscribe' is set by the source"),
        (lambda: builder().set_topics("a").set_option("kafka.x", "b"), r"set_property\('x', …\)"),
    ],
)
def test_settings_that_cannot_work_are_refused(source: object, reason: str) -> None:
    with pytest.raises(UnsupportedGraph, match=reason):
        source().build()  # type: ignore[operator]


def test_exactly_once_needs_a_prefix_of_the_jobs_own() -> None:
    record = KafkaRecordSerializationSchema.builder().set_topic("t")
    record.set_value_serialization_schema(SimpleStringSchema())
    sink = KafkaSink.builder().set_bootstrap_servers("h:9092").set_record_serializer(record.build())
    sink.set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
    with pytest.raises(UnsupportedGraph, match="EXACTLY_ONCE needs set_transactional_id_prefix"):
        sink.build()
    sink.set_transactional_id_prefix("clicks").build()
    sink.set_delivery_guarantee(DeliveryGuarantee.AT_LEAST_ONCE).build()


def test_a_schema_of_the_programs_own_is_refused() -> None:
    class Own(SerializationSchema):
        pass

    with pytest.raises(UnsupportedCall, match="the schemas of PyFlink alone"):
        Own()._written()


def test_elements_have_the_messages_times_and_passwords_are_not_shown() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    source = builder().set_topics("a").set_property("sasl.jaas.config", "password=hidden").build()
    stream = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), "kafka")
    assert stream.get_type() == Types.STRING()
    stream.print()
    kept = KeptGraph()
    with use_executor(kept):
        env.execute_async("job")
    graph = job_graph_from_json(job_graph_to_json(kept.graphs[-1]))
    assert [node.name for node in graph.nodes][:2] == ["Source: kafka", "Timestamps/Watermarks"]
    assert "hidden" not in repr(graph)


def test_malformed_messages_are_a_side_output_of_the_source() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps()
    stream = env.from_source(malformed(builder()).build(), strategy, "kafka")
    stream.print()
    for tag in (OutputTag("bad"), OutputTag("bad", MALFORMED_MESSAGE)):
        bad = stream.get_side_output(tag)
        assert bad.get_type() == MALFORMED_MESSAGE
        bad.print()
    kept = KeptGraph()
    with use_executor(kept):
        env.execute_async("job")
    graph = job_graph_from_json(job_graph_to_json(kept.graphs[-1]))
    nodes = {node.name: node for node in graph.nodes}
    # not of what makes watermarks
    assert nodes["Side Output bad"].inputs == (nodes["Source: kafka"].node_id,)
    assert "side output 'bad'" in describe(nodes["Source: kafka"].operator)


def test_a_side_output_that_a_source_does_not_have_is_refused() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_source(malformed(builder()).build(), WatermarkStrategy.no_watermarks(), "kafka")
    other = stream.get_side_output(OutputTag("bad", Types.STRING()))
    with pytest.raises(SchemaError, match="leave out the type of the tag"):
        other.get_type()
    with pytest.raises(TypeError, match="an OutputTag, not 'bad'"):
        builder().set_malformed_output("bad")  # type: ignore[arg-type]
    fresh = StreamExecutionEnvironment()
    stream = fresh.from_source(malformed(builder()).build(), WatermarkStrategy.no_watermarks(), "kafka")
    stream.get_side_output(OutputTag("late")).print()
    refused = pytest.raises(UnsupportedGraph, match="'Source: kafka' .* has no side output 'late'")
    with use_executor(KeptGraph()), refused:
        fresh.execute_async("job")


def test_columns_for_expressions() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    source = KafkaSource.builder().set_bootstrap_servers("h").set_topics("a").set_columns().build()
    found = env.from_source(source).select("CAST(value AS STRING) AS v", "topic", "offset + 1 AS next")
    schema = found._pipeline.schema(found._transformation)
    assert [field.name for field in schema.fields] == ["v", "topic", "next"]
