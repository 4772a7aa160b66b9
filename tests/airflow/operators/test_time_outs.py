"""A task whose time is over, or whose trigger failed."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk.bases.operator import TRIGGER_FAIL_REPR
from airflow.sdk.exceptions import (
    AirflowTaskTimeout,
    TaskDeferralError,
    TaskDeferralTimeout,
    TaskDeferred,
)

from tests.airflow.operators.submitting import deferred, task
from tests.airflow.surroundings import JOB, by_kill, new_context
from yarnflow.airflow.hooks.errors import JobNotSuccessful, YarnflowTaskError
from yarnflow.airflow.hooks.yarnflow import YarnflowHook
from yarnflow.airflow.operators import earlier, submit
from yarnflow.airflow.operators.submit import YarnflowSubmitOperator
from yarnflow.core.states import JobStatus
from yarnflow.testing.outside.command import FakeCommand
from yarnflow.testing.outside.rest_server import RestServer


def test_time_is_over(cluster: RestServer, context: dict[str, Any]) -> None:
    cluster.add(JOB, JobStatus.RUNNING)
    defer = deferred(task(), context)
    event = {"job_id": JOB, "status": "timeout"}
    with pytest.raises(AirflowTaskTimeout, match="it is canceled"):
        task(execution_timeout=timedelta(seconds=1)).execute_complete(context, event, **defer.kwargs)
    assert cluster.job(JOB).status is JobStatus.CANCELED


@pytest.mark.parametrize("on_kill", ["cancel", "savepoint"])
def test_what_was_ended_at_a_time_out_is_not_ended_again(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], on_kill: str
) -> None:
    """Airflow calls ``on_kill`` behind every time-out."""
    cluster.add(JOB, JobStatus.RUNNING)
    command.answers("stop", {"job_id": JOB, "savepoint_path": "/sp/1", "request_id": ""})
    defer = deferred(task(), context)
    operator = task(on_kill=on_kill)
    with pytest.raises(AirflowTaskTimeout):
        operator.execute_complete(context, {"job_id": JOB, "status": "timeout"}, **defer.kwargs)
    before, asked = command.verbs(), len(cluster.requests)
    operator.on_kill()
    time.sleep(0.2)
    assert (command.verbs(), len(cluster.requests)) == (before, asked)


def test_a_worker_that_waits_itself_is_out_of_time(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alarm comes while it waits: the next try does not take a stopped job for one that is done."""
    cluster.add(JOB, JobStatus.RUNNING)

    async def alarm(*_: Any, **__: Any) -> None:
        raise AirflowTaskTimeout

    monkeypatch.setattr(submit, "watch_for", alarm)
    command.answers("stop", {"job_id": JOB, "savepoint_path": "/sp/1", "request_id": ""})
    with pytest.raises(AirflowTaskTimeout, match="stopped with the savepoint /sp/1"):
        task(deferrable=False, on_kill="savepoint").execute(context)
    assert context["ti"].pushed["savepoint"] == "/sp/1"
    assert context["task_state_store"].values["yarnflow_job"]["ending"] is True
    cluster.becomes(JOB, JobStatus.FINISHED, stop=by_kill(JOB))
    deferred(task(on_kill="savepoint"), new_context(context["task_state_store"]))


def test_the_alarm_comes_before_the_task_waits(
    cluster: RestServer, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the next try, which looks at the job: Airflow calls ``on_kill`` then."""
    cluster.add(JOB, JobStatus.RUNNING)
    deferred(task(on_kill="savepoint"), context)

    def alarm(*_: Any, **__: Any) -> None:
        raise AirflowTaskTimeout

    monkeypatch.setattr(earlier.EarlierJobs, "look_at", alarm)
    with pytest.raises(AirflowTaskTimeout):
        task(on_kill="savepoint").execute(new_context(context["task_state_store"]))
    assert context["task_state_store"].values["yarnflow_job"]["ending"] is True


@pytest.mark.parametrize("deferrable", [True, False])
def test_the_time_is_over_and_nothing_can_be_noted(
    cluster: RestServer,
    command: FakeCommand,
    context: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    deferrable: bool,
) -> None:
    """The job is ended all the same; Airflow calls ``on_kill`` for this kind of error only."""
    cluster.add(JOB, JobStatus.RUNNING)
    operator = task(deferrable=deferrable)

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no API server")

    async def alarm(*_: Any, **__: Any) -> None:
        for name in ("get", "set"):
            monkeypatch.setattr(context["task_state_store"], name, fail)
        raise AirflowTaskTimeout

    monkeypatch.setattr(submit, "watch_for", alarm)
    if deferrable:
        deferred(operator, context)
        monkeypatch.setattr(context["task_state_store"], "set", fail)
        with pytest.raises(AirflowTaskTimeout, match="it is canceled"):
            operator.execute_complete(context, {"job_id": JOB, "status": "timeout"}, jobs=[JOB])
    else:
        with pytest.raises(AirflowTaskTimeout, match="it is canceled"):
            operator.execute(context)
    assert cluster.job(JOB).status is JobStatus.CANCELED


@pytest.mark.parametrize("on_kill", ["cancel", "leave"])
def test_what_could_not_be_ended_at_a_time_out_is_tried_again(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], on_kill: str
) -> None:
    """Airflow calls ``on_kill`` behind it."""
    cluster.add(JOB, JobStatus.RUNNING)
    operator = task(on_kill=on_kill)
    defer = deferred(operator, context)
    cluster.close()
    command.answers("cancel", {})
    with pytest.raises(AirflowTaskTimeout):
        operator.execute_complete(context, {"job_id": JOB, "status": "timeout"}, **defer.kwargs)
    before = command.verbs().count("cancel")
    operator.on_kill()
    assert command.verbs().count("cancel") - before == (1 if on_kill == "cancel" else 0)


def test_times_may_be_timedeltas(cluster: RestServer, context: dict[str, Any]) -> None:
    cluster.add(JOB, JobStatus.RUNNING)
    operator = task(poll_interval=timedelta(seconds=2), lost_after=timedelta(minutes=3))
    arguments = deferred(operator, context).trigger.serialize()[1]
    assert (arguments["poll_interval"], arguments["lost_after"]) == (2.0, 180.0)
    with pytest.raises(YarnflowTaskError, match="lost_after='never' is no number of seconds"):
        task(lost_after="never").execute(context)


def test_an_alarm_that_nobody_heard(
    cluster: RestServer, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a signal handler raises in a callback of an event loop is lost."""
    monkeypatch.setattr(submit, "_LOST_ALARM_S", 0.0)
    cluster.add(JOB, JobStatus.RUNNING)
    with pytest.raises(AirflowTaskTimeout, match="it is canceled"):
        task(deferrable=False, execution_timeout=timedelta(milliseconds=50)).execute(context)
    assert cluster.job(JOB).status is JobStatus.CANCELED


LATE = ("Trigger timeout", "event", "Trigger failure")


def come_late(how: str, operator: YarnflowSubmitOperator, context: dict[str, Any]) -> str:
    """Nobody has looked at the job for too long; or its trigger fails once more."""
    if how == "event":
        return operator.execute_complete(context, {"job_id": JOB, "status": "timeout"}, jobs=[JOB])
    failed = {"error": how}
    if how == "Trigger failure":
        for _ in range(3):
            with pytest.raises(TaskDeferred):
                operator.resume_execution(TRIGGER_FAIL_REPR, failed, context)
    return str(operator.resume_execution(TRIGGER_FAIL_REPR, failed, context))


@pytest.mark.parametrize("how", LATE)
@pytest.mark.parametrize("wait_for", ["finished", "running", "checkpoint"])
def test_a_job_that_came_there_while_nobody_looked(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], how: str, wait_for: str
) -> None:
    cluster.add(JOB, JobStatus.FINISHED if wait_for == "finished" else JobStatus.RUNNING)
    cluster.completes(JOB, 1)
    operator = task(wait_for=wait_for, on_kill="savepoint")
    deferred(operator, context)
    assert come_late(how, operator, context) == JOB
    assert cluster.job(JOB).status is not JobStatus.CANCELED
    assert "stop" not in command.verbs()
    assert context["task_state_store"].values == {}


@pytest.mark.parametrize("how", LATE)
def test_a_job_that_failed_while_nobody_looked(
    cluster: RestServer, context: dict[str, Any], how: str
) -> None:
    operator = task()
    cluster.add(JOB)
    cluster.becomes(JOB, JobStatus.FAILED, ("USER_CODE", "ValueError: bad (job.py:3)"))
    deferred(operator, context)
    with pytest.raises(JobNotSuccessful, match="ended FAILED: ValueError: bad"):
        come_late(how, operator, context)


@pytest.mark.parametrize(
    ("on_kill", "verbs"), [("savepoint", ["stop"]), ("leave", []), ("cancel", [])]
)
def test_what_becomes_of_the_job_at_a_time_out(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], on_kill: str, verbs: list[str]
) -> None:
    cluster.add(JOB, JobStatus.RUNNING)
    command.answers("stop", {"job_id": JOB, "savepoint_path": "/sp/1", "request_id": ""})
    defer = deferred(task(), context)
    before = len(command.calls)
    operator = task(on_kill=on_kill)
    with pytest.raises(AirflowTaskTimeout):
        operator.execute_complete(context, {"job_id": JOB, "status": "timeout"}, **defer.kwargs)
    # so does Airflow
    operator.on_kill()
    assert [method for method, path in cluster.requests].count("PATCH") == (1 if on_kill == "cancel" else 0)
    assert [verb for verb in command.verbs()[before:] if verb != "token"] == verbs
    assert (cluster.job(JOB).status is JobStatus.CANCELED) == (on_kill == "cancel")


def test_a_job_without_a_savepoint_is_canceled(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    cluster.add(JOB, JobStatus.RUNNING)
    command.answers("stop", error=("CHECKPOINT_FAILED", "no room"))
    defer = deferred(task(), context)
    with pytest.raises(AirflowTaskTimeout):
        task(on_kill="savepoint").execute_complete(
            context, {"job_id": JOB, "status": "timeout"}, **defer.kwargs
        )
    assert cluster.job(JOB).status is JobStatus.CANCELED


def test_a_trigger_that_fails_is_replaced_some_times(
    cluster: RestServer, context: dict[str, Any]
) -> None:
    cluster.add(JOB, JobStatus.RUNNING)
    deferred(task(), context)
    reason = "yarnflow.airflow.hooks.errors.ConnectionUnusable: connection c: there is no command /x\n"
    failed = {"error": "Trigger failure", "traceback": ["Traceback\n", "  File …\n", reason]}
    for _ in range(3):
        with pytest.raises(TaskDeferred) as raised:
            task().resume_execution(TRIGGER_FAIL_REPR, failed, context)
        assert raised.value.trigger.serialize()[1]["job_id"] == JOB
    with pytest.raises(TaskDeferralError) as ended:
        task().resume_execution(TRIGGER_FAIL_REPR, failed, context)
    assert str(ended.value) == (
        f"job {JOB} cannot be followed (ConnectionUnusable: connection c: there is no command /x); "
        "it is canceled"
    )
    assert cluster.job(JOB).status is JobStatus.CANCELED


def test_failures_of_a_trigger_neither_give_more_time_nor_count_in_the_next_try(
    cluster: RestServer, context: dict[str, Any]
) -> None:
    cluster.add(JOB, JobStatus.RUNNING)
    timed = {"execution_timeout": timedelta(hours=1), "on_kill": "leave"}
    deadline = deferred(task(**timed), context).trigger.serialize()[1]["deadline"]
    with pytest.raises(TaskDeferred) as raised:
        task(**timed).resume_execution(TRIGGER_FAIL_REPR, {"error": "Trigger failure"}, context)
    assert raised.value.trigger.serialize()[1]["deadline"] == deadline
    again = new_context(context["task_state_store"])
    assert deferred(task(**timed), again).trigger.serialize()[1]["deadline"] > deadline
    assert again["task_state_store"].values["yarnflow_job"]["trigger_failures"] == 0


def test_no_triggerer_runs_until_the_time_is_over(cluster: RestServer, context: dict[str, Any]) -> None:
    cluster.add(JOB, JobStatus.RUNNING)
    deferred(task(), context)
    with pytest.raises(TaskDeferralTimeout, match="did not get to wait_for=finished within .*it is canceled"):
        task().resume_execution(TRIGGER_FAIL_REPR, {"error": "Trigger timeout"}, context)
    assert cluster.job(JOB).status is JobStatus.CANCELED


def test_failures_of_a_trigger_that_are_far_apart_are_not_counted_together(
    cluster: RestServer, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream is followed for months."""
    cluster.add(JOB, JobStatus.RUNNING)
    deferred(task(), context)
    now_s = time.time()
    monkeypatch.setattr(time, "time", lambda: now_s)
    for _ in range(5):
        now_s += 3601
        with pytest.raises(TaskDeferred):
            task().resume_execution(TRIGGER_FAIL_REPR, {"error": "Trigger failure"}, context)


@pytest.mark.parametrize("tries", ["another one", "none"])
@pytest.mark.parametrize("by", ["execute", "trigger"])
def test_a_job_that_no_try_follows_any_more_is_ended(
    cluster: RestServer, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tries: str, by: str
) -> None:
    """Airflow does not answer when the cluster has accepted it, or when its end is told."""
    cluster.add(JOB, JobStatus.RUNNING)
    ti = context["ti"]
    ti.try_number, ti.max_tries = (1, 1) if tries == "another one" else (2, 1)
    if by == "trigger":
        deferred(task(), context)

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("API_SERVER_ERROR")

    monkeypatch.setattr(ti, "xcom_push", fail)
    if by == "trigger":
        monkeypatch.setattr(context["task_state_store"], "get", fail)
    with pytest.raises(RuntimeError, match="API_SERVER_ERROR"):
        if by == "trigger":
            event = {"job_id": JOB, "status": "lost", "state": None, "error": "nobody answers"}
            task().resume_execution("execute_complete", {"event": event}, context)
        else:
            task().execute(context)
    ended = JobStatus.RUNNING if tries == "another one" else JobStatus.CANCELED
    assert cluster.job(JOB).status is ended


def test_the_state_of_a_job_that_failed_while_nobody_looked_is_told(
    cluster: RestServer, context: dict[str, Any]
) -> None:
    cluster.add(JOB, JobStatus.FAILED)
    with pytest.raises(JobNotSuccessful, match="ended FAILED"):
        task().execute_complete(context, {"job_id": JOB, "status": "timeout"}, [JOB])
    assert context["ti"].pushed["state"] == "FAILED"


def test_a_stream_outlives_a_try_that_airflow_does_not_answer(
    cluster: RestServer, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.add(JOB, JobStatus.RUNNING)

    def fail(key: str, value: Any) -> None:
        raise RuntimeError("API_SERVER_ERROR")

    monkeypatch.setattr(context["ti"], "xcom_push", fail)
    with pytest.raises(RuntimeError, match="API_SERVER_ERROR"):
        task(wait_for="running").execute(context)
    assert cluster.job(JOB).status is JobStatus.RUNNING


def test_an_end_that_fails_as_well_does_not_hide_the_first_error(
    cluster: RestServer, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("API_SERVER_ERROR")

    def fail_too(conn_id: str) -> None:
        raise RuntimeError("no answer about connections")

    monkeypatch.setattr(context["task_state_store"], "get", fail)
    monkeypatch.setattr(YarnflowHook, "get_connection", staticmethod(fail_too))
    event = {"job_id": JOB, "status": "lost", "state": None, "error": "nobody answers"}
    with pytest.raises(RuntimeError, match="API_SERVER_ERROR"):
        task().resume_execution("execute_complete", {"event": event}, context)
