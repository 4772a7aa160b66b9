"""Tasks about a job that runs already: stop, savepoint, drill, restart."""

from __future__ import annotations

from typing import Any

import pytest

from tests.airflow.surroundings import (
    JOB,
    OTHER,
    Connections,
    info,
    listed,
    new_context,
    submitted,
    token,
)
from yarnflow.airflow.hooks import yarnflow as hook_module
from yarnflow.airflow.hooks.errors import CommandFailed, JobNotSuccessful, YarnflowTaskError
from yarnflow.airflow.operators.drill import YarnflowDrillOperator
from yarnflow.airflow.operators.restart import YarnflowRestartOperator
from yarnflow.airflow.operators.savepoint import YarnflowSavepointOperator
from yarnflow.airflow.operators.stop import YarnflowStopOperator
from yarnflow.core.states import JobStatus
from yarnflow.testing.outside.command import FakeCommand
from yarnflow.testing.outside.rest_server import RestServer

PATH = "hdfs:///sp/savepoint-1"


@pytest.fixture
def cluster(
    connections: Connections, command: FakeCommand, server: RestServer, monkeypatch: pytest.MonkeyPatch
) -> RestServer:
    """One with a running job of the key k."""
    monkeypatch.setattr(hook_module, "_LOOK_AGAIN_S", 0.01)
    connections.add(command=str(command.path))
    command.answers("list", listed(JOB, web_address=server.address, job_key="k"))
    command.answers("token", token(server.address))
    command.answers("info", error=("JOB_NOT_FOUND", "no job"))
    command.answers("stop", {"job_id": JOB, "savepoint_path": PATH, "request_id": "r"})
    command.answers("savepoint", {"job_id": JOB, "savepoint_path": PATH, "request_id": "r"})
    server.add(JOB, JobStatus.RUNNING)
    return server


def last(command: FakeCommand, verb: str) -> list[str]:
    """Arguments of the last call of a verb."""
    return [call.arguments for call in command.calls if call.verb == verb][-1][2:]


def test_a_job_is_stopped_with_a_savepoint(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    task = YarnflowStopOperator(task_id="t", job_key="k", savepoint_dir="hdfs:///sp", drain=True)
    assert task.execute(context) == PATH
    assert last(command, "stop") == ["-p", "hdfs:///sp", "--drain", JOB]
    assert context["ti"].pushed == {
        "job_id": JOB,
        "application_id": "application_1_0001",
        "rest_url": cluster.address,
        "savepoint": PATH,
    }


def test_another_try_of_a_stop_that_was_done(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """The worker died before it could say so: the cluster knows the savepoint, if it still lives."""
    command.forget("stop")
    command.answers("stop", error=("YARNFLOW", "the worker is gone"))
    task = YarnflowStopOperator(task_id="t", job_key="k")
    with pytest.raises(CommandFailed):
        task.execute(context)
    command.forget("list")
    command.answers("list", listed())
    cluster.completes(JOB, 1, savepoint=PATH)
    cluster.becomes(JOB, JobStatus.FINISHED)
    again = new_context(context["task_state_store"])
    assert YarnflowStopOperator(task_id="t", job_key="k").execute(again) == PATH
    assert again["task_state_store"].values == {}


def test_another_try_of_a_stop_whose_savepoint_nobody_knows(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    command.forget("stop")
    command.answers("stop", error=("YARNFLOW", "the worker is gone"))
    with pytest.raises(CommandFailed):
        YarnflowStopOperator(task_id="t", job_key="k", savepoint_dir="/sp").execute(context)
    command.forget("list")
    command.answers("list", listed())
    cluster.forget(JOB)
    command.forget("info")
    command.answers("info", info(JOB, "FINISHED"))
    with pytest.raises(JobNotSuccessful, match="ended FINISHED.*look for its savepoint in /sp"):
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
    command.forget("drill")
    command.answers("drill", error=("DRILL_FAILED", "no commit within 90 s"))
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


# --- restart ---


def restart(**arguments: Any) -> YarnflowRestartOperator:
    return YarnflowRestartOperator(
        task_id="t", job_key="k", application="new.py", savepoint_dir="hdfs:///sp", **arguments
    )


def new_version(cluster: RestServer, command: FakeCommand, *job_ids: str) -> None:
    """Submits lead to these jobs, one after the other."""
    for job_id in job_ids:
        command.answers("submit", submitted(job_id))
        cluster.add(job_id, JobStatus.RUNNING)


def test_a_new_version_that_commits(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    new_version(cluster, command, OTHER)
    cluster.completes(OTHER, 1)
    assert restart(application_args=["--v", 2]).execute(context) == OTHER
    assert last(command, "submit") == [
        *("-d", "--job-key", "k", "--on-existing", "fail", "--restore", PATH, "new.py", "--v", "2"),
    ]
    assert context["ti"].pushed["savepoint"] == PATH
    assert context["task_state_store"].values == {}


def test_a_new_version_that_fails_is_rolled_back(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    third = "3" * 32
    new_version(cluster, command, OTHER, third)
    cluster.becomes(OTHER, JobStatus.FAILED, ("USER_CODE", "ValueError: bad (new.py:3)"))
    cluster.completes(third, 1)
    task = restart(rollback_application="old.py", rollback_args=["--v", "1"])
    said = f"did not commit.*ValueError: bad.*old.py runs again from {PATH} as job {third}"
    with pytest.raises(JobNotSuccessful, match=said):
        task.execute(context)
    assert cluster.job(third).status is JobStatus.RUNNING
    assert last(command, "submit")[-5:] == ["--restore", PATH, "old.py", "--v", "1"]


def test_a_new_version_that_does_not_commit_is_canceled(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    new_version(cluster, command, OTHER)
    with pytest.raises(JobNotSuccessful, match="has no checkpoint after 0.1 s.*nothing runs now"):
        restart(commit_timeout=0.1).execute(context)
    assert cluster.job(OTHER).status is JobStatus.CANCELED


def test_a_new_version_that_fails_and_nothing_to_roll_back_to(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    new_version(cluster, command, OTHER)
    cluster.becomes(OTHER, JobStatus.FAILED, ("USER_CODE", "ValueError: bad (new.py:3)"))
    said = f"ValueError: bad.*nothing runs now, start it again from {PATH}"
    with pytest.raises(JobNotSuccessful, match=said):
        restart().execute(context)


def test_a_new_version_that_is_not_accepted(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    command.answers("submit", error=("STATE_INCOMPATIBLE", "other operators"))
    command.answers("submit", submitted(OTHER))
    cluster.add(OTHER, JobStatus.RUNNING)
    cluster.completes(OTHER, 1)
    with pytest.raises(JobNotSuccessful, match="other operators.*old.py runs again"):
        restart(rollback_application="old.py").execute(context)


def test_another_try_starts_from_the_savepoint_of_the_one_before(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    context["task_state_store"].set("yarnflow_savepoint", PATH)
    command.forget("list")
    command.answers("list", listed())
    new_version(cluster, command, OTHER)
    cluster.completes(OTHER, 1)
    assert restart().execute(context) == OTHER
    assert "stop" not in command.verbs()


def test_a_savepoint_that_cannot_be_taken_leaves_the_old_version(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    command.forget("stop")
    command.answers("stop", error=("CHECKPOINT_FAILED", "no room"))
    with pytest.raises(CommandFailed, match="no room"):
        restart().execute(context)
    assert cluster.job(JOB).status is JobStatus.RUNNING
    assert "submit" not in command.verbs()
