"""Connectors and formats by the names that PyFlink has for them."""

from __future__ import annotations

import pytest

from tests.api.conftest import Jobs
from yarnflow.api.common import (
    Encoder,
    JsonRowDeserializationSchema,
    SimpleStringSchema,
    Types,
    WatermarkStrategy,
)
from yarnflow.api.datastream.connectors import FileSink, FileSource, NumberSequenceSource, StreamFormat
from yarnflow.api.datastream.connectors.file_system import OutputFileConfig, RollingPolicy
from yarnflow.api.datastream.connectors.pulsar import PulsarSource
from yarnflow.errors import GraphError, SchemaError, UnsupportedCall
from yarnflow.graph.connectors import sinks, sources


def test_files_as_pyflink_names_them(jobs: Jobs) -> None:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "/in")
    source = builder.process_static_file_set().build()
    stream = jobs.env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
    policy = RollingPolicy.default_rolling_policy()
    name = OutputFileConfig.builder().with_part_prefix("p").build()
    writes = FileSink.for_row_format("/out", Encoder.simple_string_encoder())
    stream.sink_to(writes.with_rolling_policy(policy).with_output_file_config(name).build())
    nodes = jobs.graph().nodes
    assert isinstance(nodes[0].operator, sources.FileSource) and nodes[0].operator.format == "text"
    assert nodes[1].operator == sinks.FileSink("/out", "text", prefix="p", part_bytes=128 * 1024 * 1024)
    latin = FileSource.for_record_stream_format(StreamFormat.text_line_format("latin-1"), "/a", "/b").build()
    operator, _ = latin.operator()
    assert isinstance(operator, sources.FileSource)
    assert operator.path == "{/a,/b}"
    assert operator.options == {"encoding": "latin-1", "recursiveFileLookup": "true"}


def test_elements_become_files_where_they_have_columns(jobs: Jobs) -> None:
    stream = jobs.env.from_collection([("a", 1)])
    stream.sink_to(FileSink("/o", "text"))
    jobs.graph()
    stream.sink_to(FileSink("/o", "csv"))
    with pytest.raises(SchemaError, match=r"sink_to\(\): .*have no columns"):
        jobs.env.execute()


def test_number_sequences(jobs: Jobs) -> None:
    jobs.env.from_source(NumberSequenceSource(1, 5), WatermarkStrategy.no_watermarks(), "numbers").print()
    node = jobs.graph().nodes[0]
    assert node.operator == sources.SequenceSource(1, 5)
    assert node.output_schema.scalar


def test_number_sequences_have_limits() -> None:
    NumberSequenceSource(1, 10**10)
    NumberSequenceSource(2**63 - 2, 2**63 - 1)
    for start, end in ((0, 10**10), (0, 2**63 - 1)):
        said = r"^test_connectors\.py:\d+: .* more than 10,000,000,000 numbers; .* RateSource"
        with pytest.raises(GraphError, match=said):
            NumberSequenceSource(start, end)
    for start, end in ((2**63 - 1, 2**63), (-(2**63) - 1, 0)):
        with pytest.raises(GraphError, match=r"^test_connectors\.py:\d+: .* not numbers of 64 bits"):
            NumberSequenceSource(start, end)


def test_connectors_there_are_not() -> None:
    with pytest.raises(UnsupportedCall, match="PulsarSource.builder: "):
        PulsarSource.builder()


def test_formats_of_messages() -> None:
    kind = Types.ROW_NAMED(["a"], [Types.INT()])
    schema = JsonRowDeserializationSchema.builder().type_info(kind).ignore_parse_errors().build()
    assert schema._read().element_type == kind and schema._read().ignore_errors
    assert SimpleStringSchema()._read().element_type == Types.STRING()
    with pytest.raises(SchemaError, match="type_info"):
        JsonRowDeserializationSchema.builder().build()
    with pytest.raises(SchemaError, match="JSON objects become rows"):
        JsonRowDeserializationSchema.builder().type_info(Types.INT())
