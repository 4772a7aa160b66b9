"""The command runs in a process of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from yarnflow.airflow.hooks import command as command_module
from yarnflow.airflow.hooks.command import Command
from yarnflow.airflow.hooks.errors import CommandFailed, ConnectionUnusable
from yarnflow.airflow.hooks.settings import Settings, read_settings
from yarnflow.testing.outside.command import FakeCommand


@pytest.fixture
def settings(command: FakeCommand) -> Settings:
    return read_settings("c", "", None, None, {"command": str(command.path), "options": {"a.b": "1"}})


def test_the_document_of_a_verb_and_the_lines_for_people(command: FakeCommand, settings: Settings) -> None:
    command.answers("list", {"jobs": []}, notes=("one", "two"))
    lines: list[str] = []
    assert Command(settings).run("list", ["--all"], lines.append, {"c": "2"}) == {"jobs": []}
    assert lines == ["one", "two"]
    assert command.calls[0].arguments == ["list", "--json", "-Da.b=1", "-Dc=2", "--all"]


def test_an_error_has_its_code_and_no_line_of_json(command: FakeCommand, settings: Settings) -> None:
    command.answers("submit", error=("PROGRAM_FAILED", "it broke"), details="Traceback", notes=("one",))
    lines: list[str] = []
    with pytest.raises(CommandFailed, match="^it broke$") as raised:
        Command(settings).run("submit", [], lines.append)
    assert (raised.value.code, raised.value.details) == ("PROGRAM_FAILED", "Traceback")
    assert lines == ["one"]


def test_what_was_done_before_an_error(command: FakeCommand, settings: Settings) -> None:
    done = {"job_id": "j", "savepoint_path": "/sp/1"}
    command.answers("stop", done, error=("RPC_TIMEOUT", "it did not end"))
    with pytest.raises(CommandFailed) as raised:
        Command(settings).run("stop", [], print)
    assert raised.value.document == done
    with pytest.raises(CommandFailed) as raised:
        asyncio.run(Command(settings).arun("stop", []))
    assert raised.value.document == done


def test_what_a_program_leaves_behind_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its child has standard error of the command, which ends."""
    monkeypatch.setattr(command_module, "_LAST_OUTPUT_S", 1.0)
    script = tmp_path / "yarnflow"
    script.write_text("#!/bin/sh\nsleep 30 &\necho $! >&2\necho '{}'\n")
    script.chmod(0o755)
    lines: list[str] = []
    began_s = time.monotonic()
    settings = read_settings("c", "", None, None, {"command": str(script)})
    assert Command(settings).run("submit", [], lines.append) == {}
    assert time.monotonic() - began_s < 20
    os.kill(int(lines[0]), signal.SIGKILL)


def test_the_triggerer_gets_the_same(command: FakeCommand, settings: Settings) -> None:
    command.answers("token", {"address": "here"})
    assert asyncio.run(Command(settings).arun("token", ["job"])) == {"address": "here"}
    command.answers_instead("token", error=("JOB_NOT_FOUND", "no job"), notes=("one",))
    with pytest.raises(CommandFailed, match="^no job$"):
        asyncio.run(Command(settings).arun("token", ["job"]))


def test_a_command_that_is_not_there(settings: Settings, tmp_path: Path) -> None:
    missing = read_settings("my_conn", "", None, None, {"command": str(tmp_path / "nothing")})
    with pytest.raises(ConnectionUnusable, match="connection my_conn: there is no command .*/nothing"):
        Command(missing).run("list", [], print)


def test_a_command_that_may_not_be_executed(tmp_path: Path) -> None:
    (tmp_path / "program.py").touch()
    wrong = read_settings("my_conn", "", None, None, {"command": str(tmp_path / "program.py")})
    with pytest.raises(ConnectionUnusable, match="^connection my_conn: .*/program.py may not be executed"):
        Command(wrong).run("list", [], print)


def test_secrets_are_on_no_command_line(command: FakeCommand) -> None:
    options = {"alerts.webhook.url": "http://there/s3cret", "parallelism.default": "2"}
    settings = read_settings("c", "", None, None, {"command": str(command.path), "options": options})
    line, environ = Command(settings, {}).command_line("list", [], {})
    assert line == [str(command.path), "list", "--json", "-Dparallelism.default=2"]
    assert environ == {"YARNFLOW_CONF_ALERTS_WEBHOOK_URL": "http://there/s3cret"}


def test_a_secret_that_only_a_command_line_takes_is_refused(command: FakeCommand) -> None:
    options = {"spark.hadoop.fs.s3a.secret.key": "s3cret"}
    settings = read_settings("c", "", None, None, {"command": str(command.path), "options": options})
    with pytest.raises(ConnectionUnusable, match="spark.hadoop.fs.s3a.secret.key is a secret") as raised:
        Command(settings).command_line("list", [], {})
    assert "s3cret" not in str(raised.value)


def test_what_is_no_document_is_not_shown(command: FakeCommand, settings: Settings) -> None:
    """A token may be in it."""
    command.path.write_text("#!/bin/sh\necho s3cret\n")
    with pytest.raises(CommandFailed, match="wrote 7 characters that are no JSON") as raised:
        Command(settings).run("token", [], print)
    assert "s3cret" not in str(raised.value)


def test_a_command_that_hangs_lets_others_ask(
    command: FakeCommand, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_module, "_ASKED_S", 0.2)
    command.answers("list", hangs=True)
    with pytest.raises(CommandFailed, match="has not ended within 0.2 s"):
        asyncio.run(Command(settings).arun("list", []))


@pytest.mark.parametrize(
    "extra, said",
    [
        ({}, "local"),
        ({"options": {"execution.target": "remote"}}, "remote"),
        ({"env": {"YARNFLOW_CONF_EXECUTION_TARGET": "yarn-session"}}, "yarn-session"),
        ({"conf_dir": "conf"}, "yarn-per-job"),
        ({"env": {"YARNFLOW_CONF_DIR": "conf"}}, "yarn-per-job"),
    ],
)
def test_where_a_submit_goes_that_nobody_has_told(
    extra: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the command finds it: a job that runs in the worker's command cannot be detached."""
    monkeypatch.chdir(tmp_path)
    Path("conf").mkdir()
    Path("conf/yarnflow-conf.yaml").write_text("execution.target: yarn-per-job\n")
    assert Command(read_settings("c", "", None, None, extra)).configured_target() == said


def test_a_configuration_that_cannot_be_read(tmp_path: Path) -> None:
    settings = read_settings("c", "", None, None, {"options": {"execution.tarket": "remote"}})
    with pytest.raises(ConnectionUnusable, match="connection c: .*execution.target"):
        Command(settings).configured_target()


def test_settings_of_airflow_stay_in_airflow(command: FakeCommand) -> None:
    extra = {"command": str(command.path), "hadoop_conf_dir": "/hadoop", "env": {"A": "1"}}
    environ = {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "s3cret", "PATH": "/bin"}
    _, found = Command(read_settings("c", "", None, None, extra), environ).command_line("list", [], {})
    assert found == {"PATH": "/bin", "HADOOP_CONF_DIR": "/hadoop", "A": "1"}


def test_a_task_that_is_ended_ends_its_command_in_good_order(
    command: FakeCommand, settings: Settings
) -> None:
    command.answers("submit", hangs=True)
    running = Command(settings)

    def kill_when_it_hangs() -> None:
        while not command.hangs:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, lambda number, frame: running.terminate() and None)
    killer = threading.Thread(target=kill_when_it_hangs, daemon=True)
    killer.start()
    try:
        with pytest.raises(CommandFailed, match="ended with status 143"):
            running.run("submit", [], print)
    finally:
        signal.signal(signal.SIGTERM, before)
        killer.join()
    assert command.terminated == ["submit"]


def test_a_worker_that_is_killed_takes_the_command_along(command: FakeCommand) -> None:
    command.answers("submit", hangs=True)
    code = (
        "from yarnflow.airflow.hooks.command import Command\n"
        "from yarnflow.airflow.hooks.settings import Settings\n"
        f"Command(Settings('c', command={str(command.path)!r})).run('submit', [], print)\n"
    )
    path = os.pathsep.join([str(Path(__file__).parents[3]), *sys.path])
    worker = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path})
    while not command.hangs:
        assert worker.poll() is None
        time.sleep(0.01)
    worker.kill()
    worker.wait()
    while not command.terminated:
        time.sleep(0.01)
    assert command.terminated == ["submit"]
