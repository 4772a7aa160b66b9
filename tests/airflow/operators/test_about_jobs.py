"""Tasks about a job that runs already: stop, savepoint, drill."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.airflow.operators.jobs import PATH, last
from tests.airflow.surroundings import JOB, OTHER, info, listed, new_context
from yarnflow.airflow.hooks.errors import CommandFailed, JobNotSuccessful, YarnflowTaskError
from yarnflow.airflow.operators.about_job import JobOperator
from yarnflow.airflow.operators.drill import YarnflowDrillOperator
from yarnflow.airflow.operators.savepoint import YarnflowSavepointOperator
from yarnflow.airflow.operators.stop import YarnflowStopOperator
from yarnflow.core.states import JobStatus
from yarnflow.testing.outside.command import FakeCommand
from yarnflow.testing.outside.rest_server import RestServer


@pytest.fixture
def cluster(cluster_with_job: RestServer) -> RestServer:
    return cluster_with_job


def test_a_job_is_stopped_with_a_savepoint(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    task = YarnflowStopOperator(task_id="t", job_key="k", savepoint_dir="hdfs:///sp", drain=True)
    assert task.execute(context) == PATH
    assert last(command, "stop")[2:] == ["-p", "hdfs:///sp", "--drain", JOB]
    assert context["ti"].pushed == {
        "job_id": JOB,
        "application_id": "application_1_0001",
        "yarn_page": "",
        "rest_url": cluster.address,
        "savepoint": PATH,
    }


def test_a_stop_whose_end_was_not_seen(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """The savepoint is complete, so it is not lost."""
    command.forget("stop")
    done = {"job_id": JOB, "savepoint_path": PATH, "request_id": "r"}
    command.answers("stop", done, error=("RPC_TIMEOUT", "the job did not end within 60 s"))
    cluster.becomes(JOB, JobStatus.FINISHED)
    assert YarnflowStopOperator(task_id="t", job_key="k").execute(context) == PATH


def test_another_try_of_a_stop_that_was_done(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """The worker died before it could say so: the cluster knows the savepoint, if it still lives."""
    command.answers_instead("stop", error=("YARNFLOW", "the worker is gone"))
    task = YarnflowStopOperator(task_id="t", job_key="k")
    with pytest.raises(CommandFailed):
        task.execute(context)
    command.answers_instead("list", listed())
    cluster.becomes(JOB, JobStatus.FINISHED, stop=(PATH, "0" * 32))
    again = new_context(context["task_state_store"])
    assert YarnflowStopOperator(task_id="t", job_key="k").execute(again) == PATH
    assert again["task_state_store"].values == {}


def test_an_older_savepoint_is_not_that_of_the_stop(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    cluster.completes(JOB, 1, savepoint="/sp/of-last-monday")
    command.answers_instead("stop", error=("CHECKPOINT_FAILED", "no room"))
    with pytest.raises(CommandFailed):
        YarnflowStopOperator(task_id="t", job_key="k").execute(context)
    cluster.becomes(JOB, JobStatus.FAILED, ("USER_CODE", "ValueError: bad"))
    command.answers_instead("list", listed())
    with pytest.raises(JobNotSuccessful, match="ended FAILED; an earlier try was about to stop it"):
        YarnflowStopOperator(task_id="t", job_key="k").execute(new_context(context["task_state_store"]))


def test_a_stop_that_an_earlier_one_has_overtaken(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """The cluster has gone on with the stop of a worker that was lost."""
    command.answers_instead("stop", error=("CHECKPOINT_FAILED", "the job is FINISHED"))
    cluster.becomes(JOB, JobStatus.FINISHED, stop=(PATH, "0" * 32))
    assert YarnflowStopOperator(task_id="t", job_key="k").execute(context) == PATH


@pytest.mark.parametrize("by", ["the try", "somebody"])
def test_another_job_that_has_the_key_since(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], by: str
) -> None:
    """It is stopped, unless this task has stopped the one before."""
    command.answers_instead("stop", error=("YARNFLOW", "the worker is gone"))
    command.answers("stop", {"job_id": OTHER, "savepoint_path": "/sp/other", "request_id": "r"})
    with pytest.raises(CommandFailed):
        YarnflowStopOperator(task_id="t", job_key="k").execute(context)
    arguments = stops(command)[-1]
    request_id = arguments[arguments.index("--request-id") + 1]
    cluster.becomes(JOB, JobStatus.FINISHED, stop=(PATH, request_id if by == "the try" else "0" * 32))
    command.answers_instead("list", listed(OTHER, web_address=cluster.address, job_key="k"))
    cluster.add(OTHER, JobStatus.RUNNING)
    again = new_context(context["task_state_store"])
    path = YarnflowStopOperator(task_id="t", job_key="k").execute(again)
    assert path == (PATH if by == "the try" else "/sp/other")
    assert len(stops(command)) == (1 if by == "the try" else 2)


def stops(command: FakeCommand) -> list[list[str]]:
    return [call.arguments for call in command.calls if call.verb == "stop"]


def test_a_path_that_could_not_be_told_is_told_by_the_next_try(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(key: str, value: Any) -> None:
        if key == "savepoint":
            raise RuntimeError("no API server")

    monkeypatch.setattr(context["ti"], "xcom_push", fail)
    with pytest.raises(RuntimeError):
        YarnflowStopOperator(task_id="t", job_key="k").execute(context)
    cluster.becomes(JOB, JobStatus.FINISHED, stop=(PATH, "0" * 32))
    command.answers_instead("list", listed())
    again = new_context(context["task_state_store"])
    assert YarnflowStopOperator(task_id="t", job_key="k").execute(again) == PATH


def test_another_try_of_a_stop_whose_savepoint_nobody_knows(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    command.answers_instead("stop", error=("YARNFLOW", "the worker is gone"))
    with pytest.raises(CommandFailed):
        YarnflowStopOperator(task_id="t", job_key="k", savepoint_dir="/sp").execute(context)
    command.answers_instead("list", listed())
    cluster.forget(JOB)
    command.answers_instead("info", info(JOB, "FINISHED"))
    with pytest.raises(JobNotSuccessful, match="ended FINISHED.*if its savepoint is complete, it is in /sp"):
        YarnflowStopOperator(task_id="t", job_key="k", savepoint_dir="/sp").execute(
            new_context(context["task_state_store"])
        )


def test_a_savepoint(cluster: RestServer, command: FakeCommand, context: dict[str, Any]) -> None:
    task = YarnflowSavepointOperator(task_id="t", job_id=JOB, savepoint_dir="hdfs:///sp")
    assert task.execute(context) == PATH
    assert last(command, "savepoint") == [JOB, "hdfs:///sp"]
    assert context["ti"].pushed["savepoint"] == PATH


def test_a_drill(cluster: RestServer, command: FakeCommand, context: dict[str, Any]) -> None:
    command.answers("drill", {"kind": "leader", "passed": True, "verdict": "recovered"})
    task = YarnflowDrillOperator(task_id="t", what="leader", job_key="k", recovery_timeout=90)
    assert task.execute(context)["passed"] is True
    assert last(command, "drill") == ["--yes", "--timeout", "90", "leader", JOB]
    command.answers_instead("drill", error=("DRILL_FAILED", "no commit within 90 s"))
    with pytest.raises(CommandFailed, match="no commit within 90 s"):
        task.execute(context)


@pytest.mark.parametrize("names", [{}, {"job_id": JOB, "job_key": "k"}])
def test_one_name_is_needed(cluster: RestServer, context: dict[str, Any], names: dict[str, Any]) -> None:
    with pytest.raises(YarnflowTaskError, match="give job_id or job_key"):
        YarnflowStopOperator(task_id="t", **names).execute(context)


def test_no_such_job(cluster: RestServer, context: dict[str, Any]) -> None:
    with pytest.raises(JobNotSuccessful, match="no live job of the key other"):
        YarnflowStopOperator(task_id="t", job_key="other").execute(context)
    with pytest.raises(JobNotSuccessful, match=f"no live job {OTHER}"):
        YarnflowSavepointOperator(task_id="t", job_id=OTHER).execute(context)


def test_the_report_of_a_drill_that_failed_is_kept(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    report = {"job_id": JOB, "verdict": "not recovered"}
    command.answers("drill", report, error=("DRILL_FAILED", "no commit within 60 s"))
    task = YarnflowDrillOperator(
        task_id="t", what="leader", job_key="k", recovery_timeout=timedelta(minutes=1)
    )
    with pytest.raises(CommandFailed, match="no commit within 60 s"):
        task.execute(context)
    assert context["ti"].pushed["report"] == report
    assert last(command, "drill")[-4:] == ["--timeout", "60", "leader", JOB]


def test_a_task_that_was_ended_while_it_looked_for_its_job_does_nothing(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    tasks: list[JobOperator] = [
        YarnflowDrillOperator(task_id="t", job_key="k", what="leader"),
        YarnflowSavepointOperator(task_id="t", job_key="k"),
        YarnflowStopOperator(task_id="t", job_key="k"),
    ]
    for task in tasks:
        task.on_kill()
        with pytest.raises(YarnflowTaskError, match="task t was ended; the job goes on"):
            task.execute(context)
    assert set(command.verbs()) == {"list"}
