"""Whatever a user's function measures, the report that carries it can be sent."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from yarnflow.core.ids import DriverId, JobId, VertexId
from yarnflow.core.messages import DriverPhase, DriverReport, MetricDump
from yarnflow.operators.functions.measures import OperatorMeasures, UserMetricsReader
from yarnflow.operators.functions.metrics import RecordedMetrics
from yarnflow.rpc import framing
from yarnflow.rpc.codec import from_thrift, to_thrift
from yarnflow.spark.metrics import dumps
from yarnflow.spark.metrics.dumps import DumpBuilder


def sent(*found: MetricDump) -> tuple[MetricDump, ...]:
    report = DriverReport(JobId("a" * 32), DriverId("d"), 1, DriverPhase.RUNNING, metrics=found)
    struct = to_thrift(report)
    return from_thrift(DriverReport, framing.decode(type(struct), framing.encode(struct), 0)).metrics


@pytest.mark.parametrize(
    "value, arrives",
    [
        (2**63 - 1, 2**63 - 1),
        (2**63, float(2**63)),
        (-(2**70), float(-(2**70))),
        (10**400, None),
        (math.nan, None),
        (math.inf, None),
        (0.5, 0.5),
        (None, None),
    ],
)
def test_any_number_can_be_sent(value: Any, arrives: Any) -> None:
    builder = DumpBuilder()
    builder.subtask(VertexId("v"), 0, "good", 1)
    builder.subtask(VertexId("v"), 0, "odd", value)
    (dump,) = sent(*builder.dumps())
    assert dump.counts["good"] == 1
    assert {**dump.counts, **dump.rates}.get("odd") == arrives


def test_any_name_can_be_sent() -> None:
    builder = DumpBuilder()
    builder.subtask(VertexId("v"), 0, "x" * 100_000, 1)
    builder.subtask(VertexId("v"), 0, "\ud800 half a character", 2)
    builder.subtask(VertexId("v"), 0, "größe", 3)
    (dump,) = sent(*builder.dumps())
    assert sorted(dump.counts.values()) == [1, 2, 3]
    assert dump.counts["größe"] == 3 and max(map(len, dump.counts)) == 300


def test_operators_are_left_out_before_vertices(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dumps, "MAX_VALUES", 3)
    builder = DumpBuilder()
    for name in "abc":
        builder.subtask(VertexId("v"), 0, name, 1, "operator")
    builder.subtask(VertexId("v"), 0, "task", 1)
    builder.vertex(VertexId("v"), "whole", 1)
    assert [(dump.subtask_index, dump.operator) for dump in builder.dumps()] == [(-1, ""), (0, "")]
    assert "the rest is left out" in caplog.text


def test_long_names_make_no_large_report() -> None:
    builder = DumpBuilder()
    for subtask in range(100):
        for number in range(200):
            builder.subtask(VertexId("v"), subtask, f"{number:0300}", 1, "operator")
    size = sum(len(name) for dump in builder.dumps() for name in dump.counts)
    assert 900_000 < size < dumps.MAX_BYTES


def test_numbers_of_numpy_are_numbers() -> None:
    metrics, measures = RecordedMetrics(), OperatorMeasures()
    metrics.counter("seen").inc(np.int64(3))  # type: ignore[arg-type]
    metrics.meter("rate").mark_event(np.int32(2))  # type: ignore[arg-type]
    metrics.distribution("size").update(np.int16(7))  # type: ignore[arg-type]
    metrics.gauge("load", lambda: np.float32(0.5))  # type: ignore[arg-type, return-value]
    metrics.counter(5).inc()  # type: ignore[arg-type]
    UserMetricsReader(metrics).read_into(measures)
    assert measures.counters == {"seen": 3, "5": 1} and type(measures.counters["seen"]) is int
    assert measures.meters == {"rate": 2} and measures.gauges == {"load": 0.5}
    assert type(measures.distributions["size"].sum) is int
