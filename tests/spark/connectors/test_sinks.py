"""What the writers of sinks are told of their places."""

from __future__ import annotations

from typing import Any

import pytest

from yarnflow.api.common import Types
from yarnflow.graph.connectors.kafka import KafkaSink
from yarnflow.graph.connectors.messages import MessageFormat, MessageFormatKind
from yarnflow.graph.job_graph import StreamNode
from yarnflow.graph.schema import Schema
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.spark.connectors import sinks
from yarnflow.spark.connectors.batch_sink import SinkPlace

#: Spark is not asked
NO_SPARK: Any = None


def place(query_id: str) -> SinkPlace:
    sink = KafkaSink({}, MessageFormat(MessageFormatKind.STRING, Types.STRING()), topic="t")
    node = StreamNode(1, "sink", "h" * 32, sink, (0,), Schema(()), 1, 1, "")
    return SinkPlace(NO_SPARK, node, None, query_id, RunToken("j"), lambda: None, "/sinks", "/parts")


def test_what_a_kafka_sink_notes_is_told_apart_by_the_whole_id(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[object, ...]] = []
    monkeypatch.setattr(sinks, "KafkaWriter", lambda *arguments: told.append(arguments))
    for query_id in ("12345678-a", "12345678-b"):
        sinks.batch_sink(place(query_id))
    (first, second) = (arguments[3] for arguments in told)
    assert first == f"12345678-a-{'h' * 32}" and first != second
