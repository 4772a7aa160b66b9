"""Spark's settings of a batch."""

from __future__ import annotations

from yarnflow.config.configuration import Configuration
from yarnflow.spark.run.adaptive_batch import batch_settings

COALESCE = "spark.sql.adaptive.coalescePartitions"


def settings(**values: str) -> dict[str, str]:
    options = {key.replace("__", "-").replace("_", "."): value for key, value in values.items()}
    return batch_settings(Configuration.from_dict(options, "a test"))


def test_sizes_decide_unless_the_parallelism_does() -> None:
    found = settings()
    assert found[f"{COALESCE}.initialPartitionNum"] == "128"
    assert found["spark.sql.adaptive.advisoryPartitionSizeInBytes"] == str(16 * 1024 * 1024)
    assert settings(parallelism_default="3")[f"{COALESCE}.initialPartitionNum"] == "3"
    most = settings(execution_batch_adaptive_auto__parallelism_max__parallelism="9")
    assert most[f"{COALESCE}.initialPartitionNum"] == "9"


def test_sizes_may_be_told_to_decide_nothing() -> None:
    off = settings(execution_batch_adaptive_auto__parallelism_enabled="false")
    assert off == {f"{COALESCE}.enabled": "false"}


def test_what_the_user_sets_of_sparks_stays() -> None:
    found = settings(spark_sql_adaptive_enabled="false")
    assert "spark.sql.adaptive.enabled" not in found and f"{COALESCE}.parallelismFirst" in found
