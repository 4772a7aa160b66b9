"""The verbs for people who run clusters: ``logs``, ``doctor``, ``env``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.client.diagnose.tool_fakes import APPLICATION, JOB, MASTER, FakeServices, ended, yarn_with
from tests.client.diagnose.tool_fakes import application as make_application
from tests.client.environment.environments import make_environment
from yarnflow.cli import env
from yarnflow.cli.main import main
from yarnflow.client.diagnose import doctor, logs
from yarnflow.client.diagnose.checks import Check
from yarnflow.client.diagnose.logs import LogPart
from yarnflow.client.targets import Target
from yarnflow.client.yarn import services as yarn_services
from yarnflow.errors import (
    ConfigError,
    EnvironmentUnusable,
    InvalidOption,
    JobNotFound,
    YarnflowError,
    YarnUnavailable,
)


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> FakeServices:
    found = FakeServices(yarn_with(ended(make_application())))
    monkeypatch.setattr(yarn_services, "yarn_services", lambda configuration, environ: found)
    return found


def _error(capsys: pytest.CaptureFixture[str]) -> str:
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    return line


# --- doctor -----------------------------------------------------------------------


def _check(monkeypatch: pytest.MonkeyPatch, *checks: Check) -> list[str]:
    closed: list[str] = []

    def checks_for(target: Target, *arguments: Any, **more: Any) -> Any:
        return list(checks), lambda: closed.append(target.name)

    monkeypatch.setattr(doctor, "checks_for", checks_for)
    return closed


def test_doctor_prints_one_line_per_check_and_fails_if_one_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def bad() -> str:
        raise ConfigError("set it")

    checks = (Check("one", bad), Check("second", lambda: "fine"), Check("x", bad, ("one",)))
    closed = _check(monkeypatch, *checks)
    assert main(["doctor", "-t", "local"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "FAILED  one     set it",
        "ok      second  fine",
        "-       x       not checked: it needs one",
    ]
    assert err.splitlines() == ["target local", "2 of 3 checks are not ok"]
    assert closed == ["local"]


def test_doctor_is_content(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    _check(monkeypatch, Check("one", lambda: "fine"))
    assert main(["doctor"]) == 0
    assert capsys.readouterr().out == "ok      one  fine\n"


def test_doctor_of_this_machine_is_real(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "-t", "local", "-Dtaskmanager.memory.process.size=10m"]) == 1
    out = capsys.readouterr().out
    assert "ok      Python" in out and "FAILED  memory" in out and "ok      temporary directory" in out


# --- logs ---------------------------------------------------------------------------


def test_logs_have_a_heading_per_file(
    services: FakeServices, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [
        LogPart(MASTER, "a.log", "one\n", "node1:8042"),
        LogPart(MASTER, "a.log", "two", "node1:8042"),
        LogPart(MASTER, "b.log", "three\n"),
    ]
    monkeypatch.setattr(logs.ApplicationLogs, "read", lambda self: iter(parts))
    assert main(["logs", APPLICATION, "-n", "5", "--container", "master"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"==> {MASTER} a.log on node1:8042 <==",
        "one",
        "two",
        f"==> {MASTER} b.log <==",
        "three",
    ]
    assert services.closed


def test_logs_of_a_job_are_those_of_all_masters(
    services: FakeServices, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other, silent = f"{APPLICATION[:-4]}0008", f"{APPLICATION[:-4]}0009"
    for application_id in (other, silent):
        services.cluster.known[application_id] = make_application(application_id)

    def read(self: logs.ApplicationLogs) -> Iterator[LogPart]:
        application_id = self.application.application_id
        if application_id == silent:
            raise YarnUnavailable("it has no container")
        yield LogPart(MASTER, "a.log", application_id)

    monkeypatch.setattr(logs.ApplicationLogs, "read", read)
    assert main(["logs", JOB]) == 0
    out, err = capsys.readouterr()
    assert {APPLICATION, other} <= set(out.splitlines())
    assert "it has no container" in err
    assert main(["logs", other]) == 0
    assert APPLICATION not in capsys.readouterr().out
    assert main(["logs", silent]) == YarnUnavailable.exit_code


@pytest.mark.parametrize("on_yarn", [True, False])
def test_where_logs_of_a_job_are_that_is_not_on_yarn(
    on_yarn: bool,
    services: FakeServices,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def no_hadoop(*_arguments: object) -> None:
        raise YarnUnavailable("HADOOP_CONF_DIR is not set")

    if not on_yarn:
        monkeypatch.setattr("yarnflow.client.yarn.services.yarn_services", no_hadoop)
    expected = JobNotFound if on_yarn else YarnUnavailable
    assert main(["logs", "b" * 32, f"-Dio.tmp.dirs={tmp_path}"]) == expected.exit_code
    said = _error(capsys)
    assert "logs of a local or standalone cluster are files on its machines" in said
    assert f"{tmp_path}/yarnflow-" in said and "/*/logs" in said
    assert ("no application of user" in said) is on_yarn
    assert main(["logs", "b" * 32, "-Dyarnflow.log.dir=/var/log/yarnflow"]) == expected.exit_code
    assert "here in /var/log/yarnflow" in _error(capsys)
    if not on_yarn:
        assert main(["logs", APPLICATION]) == YarnUnavailable.exit_code
        assert "standalone" not in _error(capsys)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (["logs", "flights"], InvalidOption, "neither the id of an application"),
        (["logs", APPLICATION, "--container", "x"], InvalidOption, "expected master, driver, taskmanager"),
        (["logs", APPLICATION], YarnUnavailable, "yarn, which reads logs on HDFS, is not on the path"),
    ],
)
def test_logs_that_cannot_be_had(
    arguments: list[str],
    error: type[YarnflowError],
    text: str,
    services: FakeServices,
    capsys: pytest.CaptureFixture[str],
) -> None:
    services.environ = {"PATH": "/none"}
    assert main(arguments) == error.exit_code
    assert text in _error(capsys)


# --- env ----------------------------------------------------------------------------


def test_env_pack_prints_what_to_submit_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    venv = make_environment(tmp_path / ".venv")
    archive = tmp_path / "a.tar.gz"
    arguments = ["env", "pack", "--environment", str(venv), "-o", str(archive)]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert out == f"-Dpython.environment={archive}\n"
    assert "made: 0 MiB" in err and f"every node needs it as {tmp_path / 'base-python'}" in err
    assert main(arguments) == 0
    assert "is up to date" in capsys.readouterr().err
    assert main(["env", "check", str(archive)]) == 0
    assert all(line.startswith("ok  ") for line in capsys.readouterr().out.splitlines())


def test_env_check_names_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    venv = make_environment(tmp_path / "v", without=("pyspark",))
    assert main(["env", "check", str(venv)]) == EnvironmentUnusable.exit_code
    out, err = capsys.readouterr()
    assert "FAILED  pyspark is missing; pip install pyspark" in out
    assert "1 of " in err and "checks failed" in err


def test_env_pack_uploads(
    tmp_path: Path,
    services: FakeServices,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    venv = make_environment(tmp_path / "v")
    archive = tmp_path / "v.tar.gz"
    arguments = ["env", "pack", "--environment", str(venv), "-o", str(archive), "--to"]
    services.fs.make_directory("/shared")
    for destination, path in (
        ("hdfs:/shared", "/shared/v.tar.gz"),
        ("hdfs://memory:8020/shared/py.tar.gz", "/shared/py.tar.gz"),
    ):
        assert main([*arguments, destination]) == 0
        assert capsys.readouterr().out == f"-Dpython.environment=hdfs://memory:8020{path}\n"
        assert services.fs.read(path) == archive.read_bytes()
    assert main([*arguments, "hdfs:"]) == 0
    uri = capsys.readouterr().out.strip().removeprefix("-Dpython.environment=hdfs://memory:8020")
    assert uri.startswith(f"{services.layout.cache}/") and services.fs.read(uri) == archive.read_bytes()
    assert main(["env", "list"]) == 0
    out, err = capsys.readouterr()
    assert out.strip().endswith(uri) and err.startswith("1 files, ")
    assert main(["env", "clean", "--older-than", "1", "--dry-run"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("would be deleted: ") and "would be freed" in err
    assert main(["env", "clean", "--older-than", "0"]) == 0
    assert main(["env", "list"]) == 0
    assert capsys.readouterr().err.endswith(f"0 files, 0.0 MiB in {services.fs.uri}{services.layout.cache}\n")


@pytest.mark.parametrize("destination", ["s3://bucket/x", "/path", "hdfs:relative", "hdfs://other:8020/x"])
def test_where_an_archive_cannot_be_sent(destination: str) -> None:
    with pytest.raises(InvalidOption, match="--to"):
        env.hdfs_path(destination, "hdfs://memory:8020")


def test_bad_destination_is_told_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    venv = make_environment(tmp_path / "v")
    archive = tmp_path / "v.tar.gz"
    assert main(["env", "pack", "--environment", str(venv), "-o", str(archive), "--to", "x"]) == 12
    assert not archive.exists()
    assert "expected hdfs:/path" in _error(capsys)
