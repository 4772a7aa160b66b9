"""Precedence, checks with their source, masking."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from yarnflow.config import configuration as module
from yarnflow.config import parsers
from yarnflow.config.configuration import Configuration, environment_variable
from yarnflow.config.option import ConfigOption, Scope
from yarnflow.config.options import ALL_OPTIONS, OPTIONS_BY_KEY
from yarnflow.config.options.cluster import (
    HEARTBEAT_INTERVAL_MS,
    HEARTBEAT_TIMEOUT_MS,
    JOBMANAGER_RPC_ADDRESS,
    RPC_ASK_TIMEOUT_MS,
    TASKMANAGER_SLOTS,
)
from yarnflow.config.options.memory import TASKMANAGER_PROCESS_SIZE_MIB
from yarnflow.errors import ConfigError, InvalidOption, UnknownOption


def written(directory: Path, text: str) -> Path:
    (directory / "yarnflow-conf.yaml").write_text(text, encoding="utf-8")
    return directory


def test_defaults() -> None:
    conf = Configuration.load(None, {}, [])
    assert conf == Configuration.empty()
    assert conf.get(HEARTBEAT_INTERVAL_MS) == 10_000
    assert not conf.is_set(HEARTBEAT_INTERVAL_MS) and conf.source_of(HEARTBEAT_INTERVAL_MS) == "default"
    assert conf.get_raw("heartbeat.interval") is None


def test_file_below_environment_below_command_line(tmp_path: Path) -> None:
    conf_dir = written(
        tmp_path, "heartbeat.interval: 1 s\nheartbeat.timeout: 2 s\njobmanager.rpc.address: from-file\n"
    )
    environ = {
        "YARNFLOW_CONF_HEARTBEAT_INTERVAL": "3 s",
        "YARNFLOW_CONF_HEARTBEAT_TIMEOUT": "40 s",
        "YARNFLOW_CONF_DIR": "/etc/yarnflow",
        "PATH": "/bin",
    }
    conf = Configuration.load(conf_dir, environ, ["heartbeat.interval=5 s"])
    assert conf.get(JOBMANAGER_RPC_ADDRESS) == "from-file"
    assert conf.get(HEARTBEAT_TIMEOUT_MS) == 40_000
    assert conf.get(HEARTBEAT_INTERVAL_MS) == 5000
    assert conf.source_of(JOBMANAGER_RPC_ADDRESS) == f"{tmp_path}/yarnflow-conf.yaml:3"
    assert conf.source_of(HEARTBEAT_TIMEOUT_MS) == "environment variable YARNFLOW_CONF_HEARTBEAT_TIMEOUT"
    assert conf.source_of(HEARTBEAT_INTERVAL_MS) == "-D"


@pytest.mark.parametrize(
    ("dynamic", "shorter", "longer"),
    [
        ("heartbeat.interval=50 s", "heartbeat.interval (50 s, -D)", "heartbeat.timeout (50 s, default)"),
        ("heartbeat.timeout=9 s", "heartbeat.interval (10 s, default)", "heartbeat.timeout (9 s, -D)"),
        (
            "driver.heartbeat.timeout=1 s",
            "driver.report.interval (1 s, default)",
            "driver.heartbeat.timeout (1 s, -D)",
        ),
    ],
)  # fmt: skip
def test_a_heartbeat_must_come_before_its_time_out(dynamic: str, shorter: str, longer: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        Configuration.load(None, {}, [dynamic])
    assert str(caught.value) == f"{shorter} must be shorter than {longer}; change one of them"
    assert Configuration.load(None, {}, ["heartbeat.timeout=10001 ms"])


def test_with_values_leaves_the_first_as_it_was() -> None:
    first = Configuration.from_dict({"heartbeat.interval": "1 s"}, "test")
    second = first.with_values({"heartbeat.interval": "2 s", "taskmanager.numberOfTaskSlots": "3"})
    assert (first.get(HEARTBEAT_INTERVAL_MS), second.get(HEARTBEAT_INTERVAL_MS)) == (1000, 2000)
    assert second.to_dict() == {"heartbeat.interval": "2 s", "taskmanager.numberOfTaskSlots": "3"}


def test_a_value_may_hold_an_equals_sign() -> None:
    conf = Configuration.load(None, {}, ["spark.executor.extraJavaOptions=-Da=b"])
    assert conf.spark_options() == {"spark.executor.extraJavaOptions": "-Da=b"}


def test_unknown_key_names_the_nearest_and_its_source(tmp_path: Path) -> None:
    conf_dir = written(tmp_path, "# comment\n\ntaskmanager.numberOfTaskSlot: 2\n")
    with pytest.raises(UnknownOption) as caught:
        Configuration.load(conf_dir, {}, [])
    said = str(caught.value)
    where = f"{tmp_path}/yarnflow-conf.yaml:3"
    assert said.startswith(f"unknown option taskmanager.numberOfTaskSlot ({where}); ")
    assert "did you mean taskmanager.numberOfTaskSlots" in said
    with pytest.raises(UnknownOption, match=r"unknown option qqq \(-D\); conf/OPTIONS.md lists all options"):
        Configuration.load(None, {}, ["qqq=1"])
    with pytest.raises(UnknownOption, match="YARNFLOW_CONF_HEARTBEAT_INTERVALL; did you mean YARNFLOW_CONF_"):
        Configuration.load(None, {"YARNFLOW_CONF_HEARTBEAT_INTERVALL": "1 s"}, [])


def test_invalid_value_names_key_value_form_and_source(tmp_path: Path) -> None:
    conf_dir = written(tmp_path, "taskmanager:\n  memory:\n    process.size: 1728\n")
    with pytest.raises(InvalidOption) as caught:
        Configuration.load(conf_dir, {}, [])
    assert str(caught.value) == (
        f"taskmanager.memory.process.size is '1728' ({tmp_path}/yarnflow-conf.yaml:3); "
        "expected a size of 1 MiB or more with its unit, such as 1728m or 1 gb"
    )


def test_text_that_is_no_assignment() -> None:
    with pytest.raises(ConfigError, match="-Dheartbeat.interval: expected -Dkey=value"):
        Configuration.load(None, {}, ["heartbeat.interval"])


def test_deprecated_keys_are_read_and_lose_against_the_new_one() -> None:
    old = Configuration.from_dict({"akka.ask.timeout": "7 s"}, "test")
    assert old.get(RPC_ASK_TIMEOUT_MS) == 7000 and old.is_set(RPC_ASK_TIMEOUT_MS)
    both = Configuration.from_dict({"akka.ask.timeout": "7 s", "rpc.ask.timeout": "8 s"}, "test")
    assert both.get(RPC_ASK_TIMEOUT_MS) == 8000


def test_a_stronger_source_wins_with_an_old_key_too() -> None:
    conf = Configuration.from_dict({"rpc.ask.timeout": "8 s"}, "file")
    conf = conf.with_values({"akka.ask.timeout": "7 s"})
    assert conf.get(RPC_ASK_TIMEOUT_MS) == 7000


def test_secrets_are_masked_where_people_look(monkeypatch: pytest.MonkeyPatch) -> None:
    password: ConfigOption[str] = ConfigOption(
        "test.password", parsers.one_of("long"), "long", "Enum", "For this test.", Scope.CLUSTER, secret=True
    )
    monkeypatch.setitem(OPTIONS_BY_KEY, password.key, password)
    conf = Configuration.from_dict(
        {
            "test.password": "long",
            "spark.ssl.keyPassword": "hunter2",
            "spark.hadoop.fs.s3a.access.key": "AKIA",
            "security.cluster-secret-file": "/etc/secret",
        },
        "test",
    )
    assert conf.masked() == {
        "test.password": "******",
        "spark.ssl.keyPassword": "******",
        "spark.hadoop.fs.s3a.access.key": "******",
        "security.cluster-secret-file": "/etc/secret",
    }
    assert "hunter2" not in repr(conf)
    assert conf.to_dict()["spark.ssl.keyPassword"] == "hunter2"
    with pytest.raises(InvalidOption) as caught:
        conf.with_values({"test.password": "short"})
    assert "short" not in str(caught.value)


def test_it_is_a_value() -> None:
    conf = Configuration.from_dict({"heartbeat.interval": "1 s"}, "a")
    assert conf == Configuration.from_dict({"heartbeat.interval": "1 s"}, "b")
    assert hash(conf) == hash(Configuration.from_dict({"heartbeat.interval": "1 s"}, "b"))
    assert conf != Configuration.empty() and conf != "heartbeat.interval"
    assert pickle.loads(pickle.dumps(conf)) == conf


# --- the file ---------------------------------------------------------------


def test_values_are_read_as_written(tmp_path: Path) -> None:
    conf_dir = written(
        tmp_path,
        "taskmanager:\n  numberOfTaskSlots: 4\ntaskmanager.memory.process.size: 2g\n"
        "jobmanager.rpc.address:\nspark.flag: yes\nspark.number: 007\nspark.list: [a, b]\n",
    )
    conf = Configuration.load(conf_dir, {}, [])
    assert conf.get(TASKMANAGER_SLOTS) == 4
    assert conf.get(TASKMANAGER_PROCESS_SIZE_MIB) == 2048
    assert conf.get(JOBMANAGER_RPC_ADDRESS) == ""
    assert conf.spark_options() == {"spark.flag": "yes", "spark.number": "007", "spark.list": "a;b"}


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}"])
def test_an_empty_file_is_good(tmp_path: Path, text: str) -> None:
    assert Configuration.load(written(tmp_path, text), {}, []) == Configuration.empty()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("client.timeout: 1 s\nclient:\n  timeout: 2 s\n", r"set twice, at .*yaml:1 and .*yaml:3; keep"),
        ("heartbeat.interval: 1 s\n  x: [\n", r"yarnflow-conf.yaml:2 is not YAML: "),
        ("- a\n- b\n", r"yarnflow-conf.yaml:1: expected lines of the form 'key: value'"),
        ("spark.list:\n- [a]\n", r"spark.list at .*yaml:1: a list may hold plain values only"),
        ("? [a]\n: b\n", r"yarnflow-conf.yaml:1: a key must be a plain text"),
        ("spark.x: \0\n", r"yarnflow-conf.yaml is not YAML"),
    ],
)
def test_a_bad_file_is_told_by_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        Configuration.load(written(tmp_path, text), {}, [])
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read .*yarnflow-conf.yaml"):
        Configuration.load(tmp_path, {}, [])


# --- the declarations -------------------------------------------------------


def test_every_option_is_described_and_its_default_is_its_text() -> None:
    for option in ALL_OPTIONS:
        assert len(option.description) > 25 and option.description.endswith("."), option.key
        assert option.parse(option.default_text) == option.default, option.key


def test_keys_and_variables_are_unique() -> None:
    keys = [key for option in ALL_OPTIONS for key in (option.key, *option.deprecated_keys)]
    assert len(keys) == len(set(keys)) == len(OPTIONS_BY_KEY)
    assert len({environment_variable(option) for option in ALL_OPTIONS}) == len(ALL_OPTIONS)
    assert all(environment_variable(option) != module.CONF_DIR_VARIABLE for option in ALL_OPTIONS)
