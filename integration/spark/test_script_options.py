"""Which settings of a script count on a driver that runs, and which are named in its log."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from yarnflow.spark.script.session_options import SessionOptions

_TOO_LATE = {
    "spark.master": "yarnflow is the master",
    "spark.executor.memory": "set taskmanager.memory.process.size",
    "spark.serializer": "set it when the job is submitted: -Dspark.serializer=…",
    "spark.sql.catalogImplementation": "-Dspark.sql.catalogImplementation=…",
    "spark.yarn.queue": "-Dspark.yarn.queue=…",
}


def test_what_comes_too_late_is_named_and_all_else_counts(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    jars: Any = SimpleNamespace(bring=lambda options: options)
    options = SessionOptions(spark, jars, {})
    counts = {"spark.team": "clocks", "spark.hadoop.team.color": "green", "spark.executorEnv.TEAM": "clocks"}
    name = spark.sparkContext.appName
    try:
        options.prepare_context({**dict.fromkeys(_TOO_LATE, "secret"), **counts})
        conf = spark.sparkContext._jsc.sc().conf()
        assert {key: conf.get(key) for key in counts} == counts
        assert spark.sparkContext._jsc.hadoopConfiguration().get("team.color") == "green"
        assert spark.sparkContext.environment["TEAM"] == "clocks"
        told = {record.getMessage().split()[0]: record.getMessage() for record in caplog.records}
        assert told.keys() == _TOO_LATE.keys()
        assert all(advice in told[key] for key, advice in _TOO_LATE.items()), told
        assert "secret" not in caplog.text
        assert all(conf.get(key, "") != "secret" for key in _TOO_LATE)
    finally:
        for key in counts:
            spark.sparkContext._jsc.sc().conf().remove(key)
        spark.sparkContext.environment.pop("TEAM", None)
        spark.sparkContext.appName = name
