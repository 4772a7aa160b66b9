"""Whose Spark option wins, and what never reaches a command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.config.hadoop_directory import hadoop_environ
from yarnflow.errors import InvalidOption
from yarnflow.spark.launch import session
from yarnflow.spark.launch.session import (
    PROTECTED_OPTIONS,
    SessionSettings,
    executor_java_options,
    spark_options,
)


def settings(**changes: object) -> SessionSettings:
    values: dict[str, object] = {"app_name": "job", "host": "127.0.0.1", "parallelism": 3}
    values["auth_secret"] = "s3cret"
    return SessionSettings(**{**values, **changes})  # type: ignore[arg-type]


def test_defaults_follow_the_parallelism() -> None:
    options = spark_options(settings())
    assert options["spark.sql.shuffle.partitions"] == "3"
    assert options["spark.sql.session.timeZone"] == "UTC"
    assert options["spark.sql.streaming.stateStore.providerClass"].endswith("RocksDBStateStoreProvider")


def test_the_user_s_options_win_over_ours() -> None:
    user = {"spark.sql.session.timeZone": "Europe/Paris", "spark.my.own": "1"}
    options = spark_options(settings(user_options=user))
    assert options["spark.sql.session.timeZone"] == "Europe/Paris"
    assert options["spark.my.own"] == "1"


def test_paths_without_scheme_are_local_unless_somebody_says_otherwise() -> None:
    key = "spark.hadoop.fs.defaultFS"
    assert spark_options(settings())[key] == "file:///"
    assert spark_options(settings(user_options={key: "hdfs://nn"}))[key] == "hdfs://nn"


def test_paths_say_of_which_hdfs_they_are_where_it_is_not_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in hadoop_environ(tmp_path, "hdfs://nn:8020").items():
        monkeypatch.setenv(name, value)
    user = {"spark.eventLog.dir": "hdfs:///logs"}
    assert spark_options(settings(user_options=user))["spark.eventLog.dir"] == "hdfs://nn:8020/logs"
    user["spark.hadoop.fs.defaultFS"] = "hdfs://other"
    assert spark_options(settings(user_options=user))["spark.eventLog.dir"] == "hdfs:///logs"


@pytest.mark.parametrize("key", sorted(PROTECTED_OPTIONS))
def test_protected_options_are_refused_with_what_to_set_instead(key: str) -> None:
    with pytest.raises(InvalidOption, match=f"^option {key} cannot be set: "):
        spark_options(settings(user_options={key: "x"}))


def test_records_wait_no_longer_than_they_may() -> None:
    key = "spark.shuffle.streaming.networkBufferMaxWaitTimeMs"
    assert spark_options(SessionSettings("a", "h", "s", buffer_timeout_ms=7))[key] == "7"
    assert key not in spark_options(SessionSettings("a", "h", "s"))


def test_no_limit_for_python_workers_unless_asked_for() -> None:
    assert "spark.executor.pyspark.memory" not in spark_options(settings())
    assert spark_options(settings(python_memory_mib=2048))["spark.executor.pyspark.memory"] == "2048m"


def test_a_remote_driver_binds_to_every_interface() -> None:
    assert spark_options(settings())["spark.driver.bindAddress"] == "127.0.0.1"
    assert spark_options(settings(host="localhost"))["spark.driver.bindAddress"] == "127.0.0.1"
    assert spark_options(settings(host="master1"))["spark.driver.bindAddress"] == "0.0.0.0"


def test_executors_are_started_with_network_options_but_no_secret() -> None:
    options = executor_java_options(
        {
            "spark.authenticate": "true",
            "spark.authenticate.secret": "s3cret",
            "spark.ssl.keyPassword": "s3cret",
            "spark.network.timeout": "60s",
            "spark.driver.port": "4711",
            "spark.sql.shuffle.partitions": "3",
            "spark.executor.extraJavaOptions": "-Da='b c' -XX:+UseG1GC",
        }
    )
    expected = {"-Dspark.authenticate=true", "-Dspark.network.timeout=60s", "-Dspark.driver.port=4711"}
    assert expected <= set(options)
    assert options[-2:] == ("-Da=b c", "-XX:+UseG1GC")
    assert not any("s3cret" in option or "shuffle" in option for option in options)


def test_secrets_are_not_in_reprs() -> None:
    assert "s3cret" not in repr(settings())


def test_a_spare_s_master_has_a_secret_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    from pyspark import SparkContext

    told: list[str] = []

    def master(gateway: Any, host: str, options: Mapping[str, str]) -> Any:
        told.append(options["spark.authenticate.secret"])
        return SimpleNamespace(rpc_env=None)

    monkeypatch.setattr(session, "MasterEndpoint", master)
    monkeypatch.setattr(SparkContext, "_ensure_initialized", lambda gateway: None)
    for _ in range(2):
        session.warm_up(None, lambda: True)
    assert len(set(told)) == 2
    assert all(len(secret) == 64 for secret in told)
