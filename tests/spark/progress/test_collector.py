"""Spark's progress JSON → reports."""

from __future__ import annotations

import json
from typing import Any

from yarnflow.core.checkpoint.messages import SourceProgress, StateOperatorProgress
from yarnflow.spark.progress.collector import ProgressCollector


def event(batch: int, rows: int, **changes: Any) -> str:
    values: dict[str, Any] = {
        "id": "11111111-aaaa", "runId": "r1", "name": "words", "timestamp": "2013-01-01T00:00:10.000Z",
        "batchId": batch, "batchDuration": 120, "numInputRows": rows, "inputRowsPerSecond": 10.5,
        "processedRowsPerSecond": "Infinity", "durationMs": {"triggerExecution": 120},
        "eventTime": {"watermark": "2013-01-01T00:00:00.000Z"},
        "stateOperators": [
            {"numRowsTotal": 5, "memoryUsedBytes": 100},
            {"numRowsTotal": 2, "memoryUsedBytes": 10},
        ],
        "sink": {"description": "x", "numOutputRows": -1},
    }  # fmt: skip
    return json.dumps({**values, **changes})


def test_one_batch() -> None:
    collector = ProgressCollector()
    collector.progressed(event(0, 40))
    (query,) = collector.snapshot()
    assert (query.query, query.batch_id, query.input_rows, query.output_rows) == ("words", 0, 40, -1)
    assert query.watermark_ms == 1356998400000
    assert query.at_ms == 1356998410000
    assert (query.state_rows, query.state_bytes) == (7, 110)
    assert (query.input_rows_per_second, query.processed_rows_per_second) == (10.5, 0.0)


def test_totals_add_batches_and_an_idle_query_adds_nothing() -> None:
    collector = ProgressCollector(output_rows=lambda: {"words": 3})
    collector.progressed(event(0, 40))
    collector.progressed(event(1, 2))
    collector.progressed(event(1, 0))
    (query,) = collector.snapshot()
    assert (query.total_input_rows, query.total_output_rows) == (42, 6)
    assert query.input_rows == 2


def test_the_last_batch_began_when_it_began_also_while_the_query_is_idle() -> None:
    collector = ProgressCollector()
    collector.progressed(event(0, 40))
    collector.progressed(event(0, 0, timestamp="2013-01-01T01:00:00.000Z"))
    (query,) = collector.snapshot()
    assert (query.at_ms, query.batch_duration_ms) == (1356998410000, 120)


def test_totals_go_on_when_the_query_starts_again() -> None:
    collector = ProgressCollector()
    collector.progressed(event(3, 40))
    collector.progressed(event(3, 5, runId="r2"))
    assert collector.snapshot()[0].total_input_rows == 45


def test_the_epoch_is_no_watermark() -> None:
    collector = ProgressCollector()
    collector.progressed(event(0, 1, eventTime={"watermark": "1970-01-01T00:00:00.000Z"}))
    assert collector.snapshot()[0].watermark_ms == -1


def test_queries_without_a_name_get_one() -> None:
    collector = ProgressCollector()
    collector.started("22222222-bbbb", "run-1", "")
    collector.progressed(event(0, 1, id="22222222-bbbb", name=None))
    assert [q.query for q in collector.snapshot()] == ["query-22222222"]


def test_a_failure_is_forgotten_when_the_query_starts_again() -> None:
    calls: list[int] = []
    collector = ProgressCollector(on_change=lambda: calls.append(1))
    collector.started("q", "run-1", "words")
    collector.terminated("q", "run-1", "boom")
    assert collector.failures() == {"q": "boom"}
    collector.started("q", "run-2", "words")
    assert collector.failures() == {}
    assert len(calls) == 3
    # Spark's two ways of telling may overtake each other
    collector.terminated("q", "run-1", "boom")
    assert collector.failures() == {}


def test_what_checkpoints_are_made_of() -> None:
    asked: list[tuple[str, str]] = []

    def directory(query_id: str, name: str) -> str:
        asked.append((query_id, name))
        return "hdfs:/c/query-words"

    collector = ProgressCollector()
    collector.use_directories(directory)
    source = {"description": "Kafka", "startOffset": None, "endOffset": {"t": {"0": 5}}, "numInputRows": 4}
    state = {"operatorName": "stateStoreSave", "numRowsTotal": 7, "memoryUsedBytes": 9,
             "numRowsUpdated": 2, "numRowsRemoved": 1, "numShufflePartitions": 3}  # fmt: skip
    changes = {"sources": [source], "stateOperators": [state], "durationMs": {"addBatch": 90, "walCommit": 5}}
    collector.progressed(event(0, 4, **changes))
    collector.progressed(event(0, 0, **{**changes, "durationMs": {"latestOffset": 1}}))
    (query,) = collector.snapshot()
    assert query.sources == (SourceProgress("Kafka", "", '{"t":{"0":5}}', "", 4),)
    assert query.operators == (StateOperatorProgress("stateStoreSave", 7, 9, 2, 1, 3),)
    assert query.durations_ms == {"addBatch": 90, "walCommit": 5}, "an idle query repeats its last batch"
    assert query.directory == "hdfs:/c/query-words"
    assert asked == [("11111111-aaaa", "words")], "asked once per query"
