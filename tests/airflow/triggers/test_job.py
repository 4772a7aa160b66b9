"""What runs in the triggerer for a deferred task."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.sdk.execution_time.xcom import XCom
from airflow.triggers.base import TriggerEvent

from tests.airflow.surroundings import JOB, OTHER, Connections, TaskInstance, by_kill, info, token
from yarnflow.airflow.hooks.yarnflow import YarnflowHook
from yarnflow.airflow.jobs import follow
from yarnflow.airflow.triggers.job import YarnflowJobTrigger
from yarnflow.core.states import JobStatus
from yarnflow.testing.outside.command import FakeCommand
from yarnflow.testing.outside.rest_server import RestServer

GONE = ("JOB_NOT_FOUND", "no job")


@pytest.fixture
def cluster(
    connections: Connections, command: FakeCommand, server: RestServer, monkeypatch: pytest.MonkeyPatch
) -> RestServer:
    monkeypatch.setattr(follow, "_PAUSE_S", 0.01)
    monkeypatch.setattr(follow, "_LONGEST_PAUSE_S", 0.01)
    connections.add(command=str(command.path))
    command.answers("token", token(server.address))
    command.answers("info", error=GONE)
    server.add(JOB, JobStatus.RUNNING)
    return server


def fired(trigger: YarnflowJobTrigger) -> dict[str, Any]:
    """The payload of its one event."""

    async def run() -> list[TriggerEvent]:
        return [event async for event in trigger.run()]

    (event,) = asyncio.run(run())
    assert isinstance(event.payload, dict)
    return event.payload


def again(trigger: YarnflowJobTrigger) -> YarnflowJobTrigger:
    """The same in another triggerer."""
    return YarnflowJobTrigger(**trigger.serialize()[1])


def test_a_job_that_finishes(cluster: RestServer) -> None:
    cluster.completes(JOB, 1, savepoint="/sp/1")
    cluster.becomes(JOB, JobStatus.FINISHED)
    assert fired(YarnflowJobTrigger(job_id=JOB)) == {
        "status": "success",
        "job_id": JOB,
        "state": "FINISHED",
        "error": None,
        "details": None,
        "left": None,
        "savepoint": "/sp/1",
    }


def test_a_job_that_the_end_of_an_earlier_try_has_stopped(cluster: RestServer) -> None:
    cluster.becomes(JOB, JobStatus.FINISHED, stop=by_kill(JOB))
    event = fired(YarnflowJobTrigger(job_id=JOB))
    assert (event["status"], event["left"]) == ("stopped", "/sp/1")


@pytest.mark.parametrize(("wait_for", "state"), [("running", "RUNNING"), ("checkpoint", "RUNNING")])
def test_what_else_is_waited_for(cluster: RestServer, wait_for: str, state: str | None) -> None:
    cluster.completes(JOB, 1)
    event = fired(YarnflowJobTrigger(job_id=JOB, wait_for=wait_for))
    assert (event["status"], event["state"]) == ("success", state)


def test_a_job_that_fails(cluster: RestServer) -> None:
    cluster.becomes(JOB, JobStatus.FAILED, ("USER_CODE", "ValueError: bad (job.py:3)\nTraceback"))
    event = fired(YarnflowJobTrigger(job_id=JOB))
    assert (event["status"], event["state"]) == ("failed", "FAILED")
    assert event["error"] == f"job {JOB} ended FAILED: ValueError: bad (job.py:3)"
    assert event["details"] == "Traceback"


def test_a_job_whose_cluster_ended_with_it(cluster: RestServer, command: FakeCommand) -> None:
    cluster.forget(JOB)
    command.answers_instead("token", error=GONE)
    command.answers_instead("info", info(JOB, "FINISHED"))
    assert fired(YarnflowJobTrigger(job_id=JOB))["status"] == "success"
    killed = ("APPLICATION_FAILED", "application_1 ended KILLED: by an operator")
    command.answers_instead("info", error=killed)
    assert fired(YarnflowJobTrigger(job_id=JOB))["error"] == (
        f"job {JOB} ended FAILED: application_1 ended KILLED: by an operator"
    )


def test_a_job_that_nobody_knows(cluster: RestServer, command: FakeCommand) -> None:
    command.answers_instead("token", error=GONE)
    event = fired(YarnflowJobTrigger(job_id=JOB))
    assert event["status"] == "lost"
    assert "nobody knows how it ended" in event["error"]


def test_the_time_is_over(cluster: RestServer) -> None:
    trigger = YarnflowJobTrigger(job_id=JOB, deadline=time.time() - 1)
    assert fired(trigger) == {"status": "timeout", "job_id": JOB}
    assert cluster.job(JOB).status is JobStatus.RUNNING


def test_another_time_out_is_not_that_of_the_task(
    cluster: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(*_: Any) -> None:
        raise TimeoutError("the API server does not answer")

    monkeypatch.setattr(YarnflowHook, "load", slow)
    with pytest.raises(TimeoutError, match="does not answer"):
        fired(YarnflowJobTrigger(job_id=JOB, deadline=time.time() + 600))


def test_the_token_is_in_no_log(cluster: RestServer, capfd: pytest.CaptureFixture[str]) -> None:
    trigger = YarnflowJobTrigger(job_id=JOB, wait_for="running")
    fired(trigger)
    said = "".join(capfd.readouterr())
    assert JOB in said
    assert "s3cret" not in said + repr(trigger)


# --- somebody ends the task ---


def kill(
    trigger: YarnflowJobTrigger,
    monkeypatch: pytest.MonkeyPatch,
    state: str | None,
    map_index: int = -1,
    seen: Any = None,
) -> None:
    """The triggerer is told that the task is deferred no more; it is in another state by then."""

    async def left(*, ti_key: Any, key: str) -> Any:
        assert (ti_key.task_id, key) == ("task", "succeeded")
        return seen

    monkeypatch.setattr(XCom, "aget_value", left)
    ti = TaskInstance(map_index=map_index)
    name = ti.task_id if map_index < 0 else f"{ti.task_id}_{map_index}"
    monkeypatch.setattr(
        RuntimeTaskInstance, "get_task_states", staticmethod(lambda **_: {ti.run_id: {name: state}})
    )
    trigger._task_instance = ti
    asyncio.run(trigger.on_kill())


@pytest.mark.parametrize("state", ["failed", "success", "skipped", "removed"])
@pytest.mark.parametrize("map_index", [-1, 3])
def test_a_task_that_is_marked_cancels_its_job(
    cluster: RestServer, monkeypatch: pytest.MonkeyPatch, state: str, map_index: int
) -> None:
    kill(again(YarnflowJobTrigger(job_id=JOB)), monkeypatch, state, map_index)
    assert cluster.job(JOB).status is JobStatus.CANCELED


def test_airflow_cancels_the_trigger_again_meanwhile(
    cluster: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does every second, until the trigger is gone."""
    trigger = YarnflowJobTrigger(job_id=JOB)

    async def kill_twice() -> None:
        first = asyncio.create_task(trigger.on_kill())
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert cluster.job(JOB).status is JobStatus.RUNNING
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})

    asyncio.run(kill_twice())
    assert cluster.job(JOB).status is JobStatus.CANCELED


def test_all_jobs_of_a_marked_task_are_canceled(
    cluster: RestServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster.becomes(JOB, JobStatus.FINISHED)
    cluster.add(OTHER, JobStatus.RUNNING)
    kill(again(YarnflowJobTrigger(job_id=JOB, next_jobs=[OTHER])), monkeypatch, "failed")
    assert cluster.job(OTHER).status is JobStatus.CANCELED
    said = "".join(capfd.readouterr())
    assert f"Job {JOB} is FINISHED already" in said
    assert "may go on" not in said


@pytest.mark.parametrize("state", [None, "scheduled", "queued", "running", "deferred", "up_for_retry"])
def test_the_job_of_a_task_that_runs_again_goes_on(
    cluster: RestServer, monkeypatch: pytest.MonkeyPatch, state: str | None
) -> None:
    kill(YarnflowJobTrigger(job_id=JOB), monkeypatch, state)
    assert cluster.job(JOB).status is JobStatus.RUNNING


@pytest.mark.parametrize(("seen", "status"), [(True, JobStatus.RUNNING), (None, JobStatus.CANCELED)])
def test_a_task_that_has_succeeded_by_another_triggerer_keeps_its_stream(
    cluster: RestServer, monkeypatch: pytest.MonkeyPatch, seen: Any, status: JobStatus
) -> None:
    """This one has hung, and looks again when the task is done; or else somebody has marked it."""
    kill(YarnflowJobTrigger(job_id=JOB, wait_for="running"), monkeypatch, "success", seen=seen)
    assert cluster.job(JOB).status is status


def test_in_doubt_the_job_does_not_run_on_unasked(
    cluster: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger = YarnflowJobTrigger(job_id=JOB)

    def fail(**_: Any) -> None:
        raise RuntimeError("no API server")

    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", staticmethod(fail))
    trigger._task_instance = TaskInstance()
    asyncio.run(trigger.on_kill())
    assert cluster.job(JOB).status is JobStatus.CANCELED


def test_a_job_that_is_to_be_left(
    cluster: RestServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    kill(YarnflowJobTrigger(job_id=JOB, on_kill="leave"), monkeypatch, "failed")
    assert cluster.job(JOB).status is JobStatus.RUNNING
    assert "goes on, as on_kill says" in "".join(capfd.readouterr())


def test_a_job_is_stopped_with_a_savepoint(cluster: RestServer, monkeypatch: pytest.MonkeyPatch) -> None:
    trigger = YarnflowJobTrigger(job_id=JOB, on_kill="savepoint", savepoint_dir="/sp")
    kill(trigger, monkeypatch, "failed")
    assert cluster.job(JOB).status is JobStatus.FINISHED
    assert cluster.job(JOB).checkpoints[0]["external_path"].startswith("/sp/")


def test_where_no_savepoint_can_be_taken_it_is_canceled(
    cluster: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.savepoint_failure = "no room"
    kill(YarnflowJobTrigger(job_id=JOB, on_kill="savepoint"), monkeypatch, "failed")
    assert cluster.job(JOB).status is JobStatus.CANCELED


def test_the_leader_is_gone_at_that_moment(
    cluster: RestServer, command: FakeCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_old_address = YarnflowJobTrigger(job_id=JOB)
    command.answers_instead("token", token("http://127.0.0.1:1"))
    command.answers("token", token(cluster.address))
    kill(with_old_address, monkeypatch, "failed")
    assert cluster.job(JOB).status is JobStatus.CANCELED


@pytest.mark.parametrize("knows", ["no cluster", "not the cluster"])
def test_a_job_that_is_gone_is_not_said_to_go_on(
    cluster: RestServer,
    command: FakeCommand,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    knows: str,
) -> None:
    cluster.forget(JOB)
    if knows == "no cluster":
        command.answers_instead("token", error=GONE)
    kill(YarnflowJobTrigger(job_id=JOB), monkeypatch, "failed")
    said = "".join(capfd.readouterr())
    assert f"Job {JOB} is over" in said and "may go on" not in said


def test_a_cluster_that_ends_with_the_job_that_is_stopped(
    cluster: RestServer,
    monkeypatch: pytest.MonkeyPatch,
    command: FakeCommand,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It is gone before it could say that the savepoint is complete: nothing is canceled."""
    command.answers_instead("token", token(cluster.address))
    command.answers("token", error=GONE)
    cluster.savepoints_end_the_cluster = True
    kill(YarnflowJobTrigger(job_id=JOB, on_kill="savepoint"), monkeypatch, "failed")
    assert cluster.job(JOB).status is JobStatus.FINISHED
    said = "".join(capfd.readouterr())
    assert f"Job {JOB} is over" in said and "may go on" not in said


def test_a_stop_with_another_id_than_was_asked_for(
    cluster: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As through YARN's web proxy."""
    cluster.names_requests_itself = True
    kill(YarnflowJobTrigger(job_id=JOB, on_kill="savepoint"), monkeypatch, "failed")
    assert cluster.job(JOB).status is JobStatus.FINISHED
    assert ("PATCH", f"/jobs/{JOB}?mode=cancel") not in cluster.requests
