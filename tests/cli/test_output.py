"""``--json``: one document on standard output, an error as the last line of standard error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from tests.cli.test_cli import PROGRAM, interpreter
from tests.client.fakes import FakeConnection, checkpoint
from yarnflow.cli.main import VERBS, main
from yarnflow.cli.output import Verb, plain_values, requested
from yarnflow.client import targets
from yarnflow.core.checkpoint.messages import CheckpointKind
from yarnflow.core.ids import JobId
from yarnflow.core.messages import ErrorInfo, JobSubmission, LogLevelAnswer, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.errors import RpcUnavailable
from yarnflow.testing.gateways.dispatcher import FakeDispatcher

__all__ = ["interpreter"]

JOB = JobId("ab" * 16)
SAVEPOINT = checkpoint(7, kind=CheckpointKind.SAVEPOINT, path="file:///sp/savepoint-ababab-1")
#: without a document: what they print has no end, or is a script
WITHOUT = {"jobmanager", "taskmanager", "historyserver", "completion", "session attach"}


@pytest.fixture
def dispatcher(monkeypatch: pytest.MonkeyPatch) -> FakeDispatcher:
    fake = FakeDispatcher([JobStatus.RUNNING])
    fake.submissions.append(JobSubmission(JOB, "flights", ProgramKind.GRAPH, "{}", {}))
    monkeypatch.setattr(
        targets.Target, "connect", lambda target, *_: FakeConnection(fake, target.owned)
    )
    return fake


def verbs() -> Iterator[tuple[str, click.Command]]:
    """All commands, those of groups by both of their words."""
    for name, (module, _) in VERBS.items():
        command = import_module(f"yarnflow.cli.{module}").command
        if isinstance(command, click.Group):
            yield from ((f"{name} {inner}", found) for inner, found in command.commands.items())
        else:
            yield name, command


def test_every_verb_that_prints_data_has_a_document() -> None:
    assert {name for name, command in verbs() if not isinstance(command, Verb)} == WITHOUT


def test_every_document_is_described() -> None:
    for name, command in verbs():
        if isinstance(command, Verb):
            described = is_dataclass(command.answer) or len(str(command.answer)) > 20
            assert described, name


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "--all"],
        ["cancel", JOB],
        ["cancel", "-d", JOB],
        ["cancel", "-s", "file:///sp", "--json", JOB],
        ["stop", JOB, "-p", "file:///sp", "-detached"],
        ["savepoint", JOB, "file:///sp"],
        ["savepoint", "-detached", JOB, "file:///sp"],
        ["checkpoint", JOB],
        ["checkpoints", JOB],
        ["log-level", "yarnflow", "debug"],
        ["version"],
    ],
    ids=" ".join,
)
def test_standard_output_is_the_document(
    arguments: list[str], dispatcher: FakeDispatcher, capsys: pytest.CaptureFixture[str]
) -> None:
    dispatcher.outcomes = [SAVEPOINT]
    if arguments[:2] == ["cancel", "-s"]:
        dispatcher.states = [JobStatus.RUNNING, JobStatus.FINISHED]
        details = lambda job_id: dispatcher.await_job_change(job_id, -1, 0)  # noqa: E731
        dispatcher.job_details = details  # type: ignore[method-assign]
    assert main([*arguments, "--json"] if "--json" not in arguments else arguments) == 0
    document = json.loads(capsys.readouterr().out)
    (command,) = [found for name, found in verbs() if name in (arguments[0], f"{arguments[0]} trigger")]
    assert isinstance(command, Verb) and isinstance(command.answer, type)
    assert set(document) == {field.name for field in fields(command.answer)}


def test_jobs_are_listed_with_where_they_run(
    dispatcher: FakeDispatcher, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (job,), (cluster,) = document["jobs"], document["clusters"]
    assert (job["job_id"], job["status"], job["cluster"]) == (JOB, "RUNNING", cluster["name"])
    assert (cluster["target"], cluster["error"]) == ("remote", "")


def test_details_of_a_job_are_the_same_with_and_without(
    dispatcher: FakeDispatcher, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", JOB]) == main(["info", "--json", JOB]) == 0
    out = capsys.readouterr().out
    assert out[: len(out) // 2] == out[len(out) // 2 :]


@pytest.mark.parametrize("target", [[], ["-m", "host:1"]])
def test_a_submit_says_which_jobs_it_had(
    target: list[str], tmp_path: Path, dispatcher: FakeDispatcher, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "prog.py"
    program.write_text(PROGRAM)
    dispatcher.states = [JobStatus.CREATED, JobStatus.RUNNING, JobStatus.FINISHED]
    assert main(["submit", "--json", *target, str(program), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {
        "jobs": [{"job_id": JOB, "name": "flights", "status": "FINISHED", "attached_to_existing": False}],
        "target": "remote" if target else "local",
    }
    # what the program prints is for people
    assert "in the program ['--json']\n" in captured.err


@pytest.mark.parametrize("verb", ["submit", "info"])
def test_what_children_of_a_program_print_is_no_answer(
    verb: str, tmp_path: Path, dispatcher: FakeDispatcher, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "prog.py"
    program.write_text(f"import subprocess\nsubprocess.run(['echo', 'by a child'])\n{PROGRAM}")
    dispatcher.states = [JobStatus.FINISHED]
    assert main([verb, "--json", str(program)]) == 0
    captured = capfd.readouterr()
    assert json.loads(captured.out)
    assert "by a child\n" in captured.err


def test_a_submit_whose_job_fails_says_both(
    tmp_path: Path, dispatcher: FakeDispatcher, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "prog.py"
    program.write_text(PROGRAM)
    dispatcher.states = [JobStatus.RUNNING, JobStatus.FAILED]
    dispatcher.error = ErrorInfo("USER_CODE", "ValueError: 'x' in map()", "Traceback:\n  File prog.py")
    assert main(["submit", "--json", str(program)]) == 45
    captured = capsys.readouterr()
    assert json.loads(captured.out)["jobs"][0]["status"] == "FAILED"
    error = json.loads(captured.err.splitlines()[-1])["error"]
    assert (error["code"], error["exit_status"]) == ("USER_CODE", 45)
    assert error["details"] == "Traceback:\n  File prog.py" and "ValueError" in error["message"]


@pytest.mark.parametrize(
    ("arguments", "code", "status", "retryable"),
    [
        (["cancel", "--json", "12"], "JOB_NOT_FOUND", 41, False),
        (["list", "--json", "-t", "locl"], "INVALID_OPTION", 12, False),
        (["list", "-Dx=y", "--json"], "UNKNOWN_OPTION", 11, False),
        (["list", "--jsno", "--json"], "USAGE", 2, False),
        (["lsit", "--json"], "USAGE", 2, False),
        (["submit", "--json", "/none.py"], "PROGRAM_NOT_FOUND", 21, False),
        (["info", "--json", JOB], "RPC_UNAVAILABLE", 72, True),
    ],
)
def test_errors_are_documents(
    arguments: list[str],
    code: str,
    status: int,
    retryable: bool,
    dispatcher: FakeDispatcher,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if arguments[0] == "info":
        dispatcher.down = RpcUnavailable("nobody listens")
    assert main(arguments) == status
    captured = capsys.readouterr()
    assert captured.out == ""
    error = json.loads(captured.err.splitlines()[-1])["error"]
    assert (error["code"], error["exit_status"], error["retryable"]) == (code, status, retryable)


def test_an_error_of_our_own_is_a_document_too(
    dispatcher: FakeDispatcher, capsys: pytest.CaptureFixture[str]
) -> None:
    dispatcher.down = ZeroDivisionError("a bug")  # type: ignore[assignment]
    assert main(["checkpoints", "--json", JOB]) == 90
    error = json.loads(capsys.readouterr().err.splitlines()[-1])["error"]
    assert error["code"] == "INTERNAL" and "ZeroDivisionError: a bug" in error["message"]


def test_what_failed_in_part_is_shown_before_the_error(
    dispatcher: FakeDispatcher, capsys: pytest.CaptureFixture[str]
) -> None:
    dispatcher.level_answers = (LogLevelAnswer("JobManager"), LogLevelAnswer("driver d1", "gone"))
    assert main(["log-level", "root", "WARN", "--json"]) == 70
    captured = capsys.readouterr()
    assert json.loads(captured.out)["processes"][1] == {"process": "driver d1", "error": "gone"}
    assert json.loads(captured.err)["error"]["code"] == "RPC"
    assert main(["log-level", "root", "WARN"]) == 70
    assert capsys.readouterr().out == "JobManager: changed\ndriver d1: gone\n"
    assert [(level.logger, level.level) for level in dispatcher.levels] == [("", "WARN")] * 2


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["list", "--json"], True),
        (["submit", "job.py", "--json"], False),
        (["submit", "-py", "job.py", "--json"], True),
        (["submit", "-py", "job.py", "other.py", "--json"], False),
        (["list"], False),
    ],
)
def test_flags_of_the_program_are_not_the_commands(arguments: list[str], found: bool) -> None:
    assert requested(arguments, "--json") is found


def test_values_are_those_json_has() -> None:
    node: Any = {"a": (JobStatus.RUNNING, Path("/x")), "b": SAVEPOINT}
    plain = plain_values(node)
    assert plain["a"] == ["RUNNING", "/x"] and plain["b"]["kind"] == "SAVEPOINT"
    assert json.loads(json.dumps(plain)) == plain
