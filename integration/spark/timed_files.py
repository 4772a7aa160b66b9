"""Streams of small files that are read one per micro-batch, in order."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from integration.spark.translate_support import EPOCH
from yarnflow.api import DataStream, FileSource, StreamExecutionEnvironment
from yarnflow.api.common import Duration, WatermarkStrategy
from yarnflow.api.executor import use_executor
from yarnflow.graph.job_graph import JobGraph
from yarnflow.testing.kept_graph import KeptGraph

#: of a record: key, minutes since ``EPOCH``, number
Record = tuple[str, float, int]
SCHEMA: Final = "k STRING, ts TIMESTAMP, n BIGINT"
_AGE_S: Final = 1_700_000_000


def at(minutes: float) -> dt.datetime:
    return EPOCH + dt.timedelta(minutes=minutes)


def put(directory: Path, number: int, records: Sequence[Record]) -> None:
    """Write file ``number`` of a stream."""
    directory.mkdir(exist_ok=True)
    table = pa.table(
        {
            "k": [k for k, _, _ in records],
            "ts": pa.array([at(minutes) for _, minutes, _ in records], pa.timestamp("us", "UTC")),
            "n": [n for _, _, n in records],
        }
    )
    hidden = directory / f".{number:03d}"
    pq.write_table(table, hidden)
    # Spark reads files by age
    os.utime(hidden, (_AGE_S + number, _AGE_S + number))
    hidden.rename(directory / f"{number:03d}.parquet")


def stream(
    env: StreamExecutionEnvironment, directory: Path, bounded: bool, late_minutes: int = 1
) -> DataStream:
    """Files as a stream with event time."""
    source = FileSource(directory, "parquet", schema=SCHEMA, bounded=bounded, max_files_per_trigger=1)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(late_minutes))
    return env.from_source(source, strategy.with_timestamp_assigner("ts"))


class Program:
    """The job of a program, for helpers that take graphs."""

    def __init__(self, env: StreamExecutionEnvironment) -> None:
        kept = KeptGraph()
        with use_executor(kept):
            env.execute_async("program")
        self.graph = kept.graphs[-1]

    def job(self) -> JobGraph:
        return self.graph


def plain(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows with times without their zone, sorted."""
    return sorted(
        tuple(v.replace(tzinfo=None) if isinstance(v, dt.datetime) else v for v in row) for row in rows
    )
