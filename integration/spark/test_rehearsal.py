"""The rehearsal of a driver that waits, on a real Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.patience import PATIENCE
from yarnflow.spark.progress.collector import ProgressCollector
from yarnflow.spark.progress.listener import listen
from yarnflow.spark.run import rehearsal
from yarnflow.spark.run.rehearsal import REHEARSAL_PREFIX, rehearse


def test_it_runs_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rehearsal, "_TIMEOUT_S", PATIENCE.process_s)
    (tmp_path / f"{REHEARSAL_PREFIX}of-a-driver-that-was-killed/query").mkdir(parents=True)
    (tmp_path / "query-job").mkdir()
    progress = ProgressCollector(on_change=lambda: None)
    listen(spark, progress)
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    with caplog.at_level("INFO"):
        rehearse(spark, str(tmp_path), "driver-1", 2, lambda: False)
    assert "The executors are warm" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == ["query-job"]
    assert progress.snapshot() == (), "nobody's business but the driver's own"
    assert spark.streams.active == []
    assert spark.conf.get("spark.sql.shuffle.partitions") == partitions


def test_it_ends_when_the_driver_is_wanted(spark: SparkSession, tmp_path: Path) -> None:
    looks = iter([False, True])
    rehearse(spark, str(tmp_path), "driver-1", 2, lambda: next(looks, True))
    assert list(tmp_path.iterdir()) == []
