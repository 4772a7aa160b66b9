"""The task that has a job run."""

from __future__ import annotations

import json
import os
import signal
import threading
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
from yarnflow.airflow.hooks.errors import (
    CommandFailed,
    ConnectionUnusable,
    JobNotSuccessful,
    YarnflowTaskError,
)
from yarnflow.airflow.operators import submit
from yarnflow.airflow.operators.submit import YarnflowSubmitOperator
from yarnflow.airflow.triggers.job import YarnflowJobTrigger
from yarnflow.core.states import JobStatus
from yarnflow.testing.outside.command import FakeCommand
from yarnflow.testing.outside.rest_server import RestServer

GONE = ("JOB_NOT_FOUND", "no job")


@pytest.fixture
def cluster(
    connections: Connections, command: FakeCommand, server: RestServer, monkeypatch: pytest.MonkeyPatch
) -> RestServer:
    """One that the command finds, and that takes a job."""
    monkeypatch.setattr(submit, "_LOOK_AGAIN_S", 0.01)
    connections.add(command=str(command.path), target="yarn-per-job")
    command.answers("submit", submitted(JOB), notes=("Submitting.",))
    command.answers("list", listed(JOB, web_address=server.address, job_key="k"))
    command.answers("token", token(server.address))
    command.answers("info", error=GONE)
    return server


def task(**arguments: Any) -> YarnflowSubmitOperator:
    return YarnflowSubmitOperator(task_id="t", application="job.py", **{"job_key": "k", **arguments})


def deferred(operator: YarnflowSubmitOperator, context: dict[str, Any]) -> TaskDeferred:
    with pytest.raises(TaskDeferred) as raised:
        operator.execute(context)
    return raised.value


# --- submit ---


def test_a_submitted_job_is_left_to_the_trigger(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    operator = task(
        application_args=["--n", 3],
        options={"parallelism.default": 2},
        restore="latest",
        name="counts",
        parallelism=4,
        files=["a.py", "b.zip"],
        execution_timeout=timedelta(hours=1),
        on_kill="savepoint",
        savepoint_dir="hdfs:///sp",
    )
    defer = deferred(operator, context)
    path, arguments = defer.trigger.serialize()
    assert json.loads(json.dumps(arguments)) == arguments
    assert "s3cret" not in json.dumps(arguments)
    assert path == f"{YarnflowJobTrigger.__module__}.{YarnflowJobTrigger.__name__}"
    assert YarnflowJobTrigger(**arguments).serialize() == (path, arguments)
    assert (arguments["job_id"], arguments["on_kill"]) == (JOB, "savepoint")
    assert 3500 < arguments["deadline"] - time.time() < 3600
    assert defer.timeout is not None and defer.timeout > timedelta(hours=1)
    assert context["ti"].pushed == {
        "job_id": JOB,
        "application_id": "application_1_0001",
        "rest_url": cluster.address,
    }
    call = next(call for call in command.calls if call.verb == "submit")
    assert call.arguments == [
        *("submit", "--json", "-Dparallelism.default=2", "-t", "yarn-per-job", "-d", "--job-key", "k"),
        *("--on-existing", "attach", "--restore", "latest", "--name", "counts", "-p", "4"),
        *("-pyfs", "a.py,b.zip", "job.py", "--n", "3"),
    ]


def test_a_job_that_is_only_to_be_accepted(cluster: RestServer, context: dict[str, Any]) -> None:
    assert task(wait_for="none").execute(context) == JOB


def test_the_key_is_of_one_run_where_its_end_is_waited_for() -> None:
    batch = YarnflowSubmitOperator(task_id="t", application="job.py")
    stream = YarnflowSubmitOperator(task_id="t", application="job.py", wait_for="running")
    assert "run_id" in batch.job_key
    assert "run_id" not in stream.job_key
    assert "map_index" in batch.job_key and "map_index" in stream.job_key


@pytest.mark.parametrize("name", ["wait_for", "on_kill", "on_existing"])
def test_an_unknown_choice_is_refused_before_anything_is_submitted(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], name: str
) -> None:
    with pytest.raises(YarnflowTaskError, match=f"{name}='often' is none of "):
        task(**{name: "often"}).execute(context)
    assert command.calls == []


def test_no_such_connection(connections: Connections, context: dict[str, Any]) -> None:
    with pytest.raises(ConnectionUnusable, match="there is no connection nowhere") as raised:
        task(yarnflow_conn_id="nowhere").execute(context)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("PROGRAM_NOT_FOUND", "program job.py does not exist"),
        ("DUPLICATE_JOB", "job key k belongs to the live job"),
        ("STORAGE_DENIED", "another user's"),
    ],
)
def test_what_the_command_refuses_is_the_error_in_one_line(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], code: str, message: str
) -> None:
    command.forget("submit")
    command.answers("submit", error=(code, message), details="Traceback")
    with pytest.raises(CommandFailed, match=f"^{message}$"):
        task().execute(context)
    # another try does not take the next job of the key for its own
    assert context["task_state_store"].values == {}


# --- another try ---


def test_another_try_follows_the_job_of_the_one_before(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    deferred(task(), context)
    cluster.add(JOB, JobStatus.RUNNING)
    again = new_context(context["task_state_store"])
    assert deferred(task(), again).trigger.serialize()[1]["job_id"] == JOB
    assert command.verbs().count("submit") == 1
    assert again["ti"].pushed["application_id"] == "application_1_0001"


def test_a_job_that_has_finished_meanwhile_is_not_run_again(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    deferred(task(), context)
    command.forget("info")
    command.answers("info", info(JOB, "FINISHED"))
    again = new_context(context["task_state_store"])
    assert task().execute(again) == JOB
    assert command.verbs().count("submit") == 1
    assert again["ti"].pushed["state"] == "FINISHED"
    # cleared by somebody who wants it done once more
    deferred(task(), new_context(context["task_state_store"]))
    assert command.verbs().count("submit") == 2


@pytest.mark.parametrize("status", ["FAILED", "CANCELED", None])
def test_a_job_that_did_not_end_well_is_submitted_again(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], status: str | None
) -> None:
    deferred(task(), context)
    if status is not None:
        command.forget("info")
        command.answers("info", info(JOB, status))
    deferred(task(), new_context(context["task_state_store"]))
    assert command.verbs().count("submit") == 2


def test_a_job_that_is_being_canceled_has_its_end_first(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    deferred(task(), context)
    cluster.add(JOB, JobStatus.CANCELLING)
    threading.Timer(0.1, lambda: cluster.becomes(JOB, JobStatus.CANCELED)).start()
    deferred(task(), new_context(context["task_state_store"]))
    assert cluster.job(JOB).status is JobStatus.CANCELED
    assert command.verbs().count("submit") == 2


def test_a_job_that_was_found_and_is_being_canceled_is_not_followed(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    command.forget("submit")
    command.answers("submit", submitted(OTHER, attached=True))
    command.answers("submit", submitted(JOB))
    cluster.add(OTHER, JobStatus.CANCELLING)
    threading.Timer(0.1, lambda: cluster.becomes(OTHER, JobStatus.CANCELED)).start()
    assert deferred(task(), context).trigger.serialize()[1]["job_id"] == JOB


@pytest.mark.parametrize("is_own", [True, False])
def test_a_worker_that_died_before_it_could_note_the_job(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], is_own: bool
) -> None:
    now_ms = int(time.time() * 1000)
    context["task_state_store"].set("yarnflow_job", {"job_key": "k", "since_ms": now_ms})
    command.forget("list")
    start_ms = now_ms + 1000 if is_own else now_ms - 3_600_000
    command.answers("list", listed(JOB, web_address=cluster.address, job_key="k", start_ms=start_ms))
    deferred(task(on_existing="fail"), context)
    assert command.verbs().count("submit") == (0 if is_own else 1)


# --- the end ---


def test_a_worker_that_waits_itself(cluster: RestServer, context: dict[str, Any]) -> None:
    cluster.add(JOB, JobStatus.RUNNING)
    cluster.completes(JOB, 1, savepoint="/sp/1")
    cluster.becomes(JOB, JobStatus.FINISHED)
    assert task(deferrable=False).execute(context) == JOB
    assert context["ti"].pushed["state"] == "FINISHED"
    assert context["ti"].pushed["savepoint"] == "/sp/1"
    assert context["task_state_store"].values == {}


@pytest.mark.parametrize("wait_for", ["running", "checkpoint"])
def test_a_stream_goes_on_when_the_task_is_done(
    cluster: RestServer, context: dict[str, Any], wait_for: str
) -> None:
    cluster.add(JOB, JobStatus.RUNNING)
    cluster.completes(JOB, 1)
    assert task(deferrable=False, wait_for=wait_for).execute(context) == JOB
    assert cluster.job(JOB).status is JobStatus.RUNNING


def test_the_line_of_the_users_code_is_the_error(cluster: RestServer, context: dict[str, Any]) -> None:
    cluster.add(JOB)
    cluster.becomes(JOB, JobStatus.FAILED, ("USER_CODE", "ValueError: bad (job.py:3)\nTraceback\n  …"))
    with pytest.raises(JobNotSuccessful) as raised:
        task(deferrable=False).execute(context)
    assert str(raised.value) == f"job {JOB} ended FAILED: ValueError: bad (job.py:3)"
    assert context["ti"].pushed["state"] == "FAILED"


def test_all_jobs_of_a_program_are_waited_for(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    command.forget("submit")
    command.answers("submit", submitted(JOB, OTHER))
    defer = deferred(task(), context)
    assert defer.trigger.serialize()[1]["next_jobs"] == [OTHER]
    event = {"job_id": JOB, "status": "success", "state": "FINISHED", "error": None}
    with pytest.raises(TaskDeferred) as raised:
        task().execute_complete(context, event, **defer.kwargs)
    assert raised.value.trigger.serialize()[1]["job_id"] == OTHER
    done = {**event, "job_id": OTHER}
    assert task().execute_complete(context, done, **raised.value.kwargs) == JOB


def test_a_program_on_the_worker_itself(
    connections: Connections, command: FakeCommand, context: dict[str, Any]
) -> None:
    connections.add(command=str(command.path))
    command.answers("submit", submitted(JOB, target="local"))
    assert task(target="local").execute(context) == JOB
    assert "-d" not in command.calls[0].arguments
    assert command.verbs() == ["submit"]


# --- its end by others ---


def test_time_is_over(cluster: RestServer, context: dict[str, Any]) -> None:
    cluster.add(JOB, JobStatus.RUNNING)
    defer = deferred(task(), context)
    event = {"job_id": JOB, "status": "timeout"}
    with pytest.raises(AirflowTaskTimeout, match="it is canceled"):
        task(execution_timeout=timedelta(seconds=1)).execute_complete(context, event, **defer.kwargs)
    assert cluster.job(JOB).status is JobStatus.CANCELED


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
    with pytest.raises(AirflowTaskTimeout):
        task(on_kill=on_kill).execute_complete(
            context, {"job_id": JOB, "status": "timeout"}, **defer.kwargs
        )
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
    failed = {"error": "Trigger failure", "traceback": ["no such class"]}
    for _ in range(3):
        with pytest.raises(TaskDeferred) as raised:
            task().resume_execution(TRIGGER_FAIL_REPR, failed, context)
        assert raised.value.trigger.serialize()[1]["job_id"] == JOB
    with pytest.raises(TaskDeferralError):
        task().resume_execution(TRIGGER_FAIL_REPR, failed, context)
    assert cluster.job(JOB).status is JobStatus.CANCELED


def test_no_triggerer_runs_until_the_time_is_over(cluster: RestServer, context: dict[str, Any]) -> None:
    cluster.add(JOB, JobStatus.RUNNING)
    deferred(task(), context)
    with pytest.raises(TaskDeferralTimeout):
        task().resume_execution(TRIGGER_FAIL_REPR, {"error": "Trigger timeout"}, context)
    assert cluster.job(JOB).status is JobStatus.CANCELED


def killed_when(operator: YarnflowSubmitOperator, happens: Any) -> Any:
    """Airflow's worker calls ``on_kill`` in a signal handler of the thread that executes."""

    def kill() -> None:
        while not happens():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, lambda number, frame: operator.on_kill())
    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


@pytest.fixture
def _signals() -> Any:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("_signals")
def test_a_killed_task_cancels_its_job(cluster: RestServer, context: dict[str, Any]) -> None:
    cluster.add(JOB, JobStatus.RUNNING)
    operator = task(deferrable=False)
    killer = killed_when(operator, lambda: any(path.endswith("/events") for _, path in cluster.requests))
    with pytest.raises(JobNotSuccessful, match="CANCELED"):
        operator.execute(context)
    killer.join()


@pytest.mark.usefixtures("_signals")
def test_a_task_killed_while_it_submits_takes_the_submit_back(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    command.forget("submit")
    command.answers("submit", hangs=True)
    operator = task()
    killer = killed_when(operator, lambda: command.hangs)
    with pytest.raises(CommandFailed, match="ended with status 143"):
        operator.execute(context)
    killer.join()
    assert command.terminated == ["submit"]
    assert context["task_state_store"].values["yarnflow_job"]["jobs"] == []


@pytest.mark.usefixtures("_signals")
def test_a_job_that_was_accepted_before_its_submit_was_broken_off_is_canceled(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    command.forget("submit")
    command.answers("submit", hangs=True)
    command.forget("list")
    start_ms = int(time.time() * 1000)
    command.answers("list", listed(JOB, web_address=cluster.address, job_key="k", start_ms=start_ms))
    cluster.add(JOB, JobStatus.RUNNING)
    operator = task()
    killer = killed_when(operator, lambda: command.hangs)
    with pytest.raises(CommandFailed):
        operator.execute(context)
    killer.join()
    assert cluster.job(JOB).status is JobStatus.CANCELED


def test_a_task_killed_while_it_looks_at_its_job_ends_it(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    deferred(task(), context)
    command.forget("token")
    command.answers("token", error=("YARN_UNAVAILABLE", "no ResourceManager"))
    command.forget("info")
    command.answers("info", error=("YARN_UNAVAILABLE", "no ResourceManager"))
    command.answers("cancel", {})
    again = task()
    with pytest.raises(CommandFailed, match="no ResourceManager"):
        again.execute(new_context(context["task_state_store"]))
    before = len(command.calls)
    again.on_kill()
    while len(command.calls) == before:
        time.sleep(0.01)
    assert command.calls[before].arguments[-1] == JOB


def test_a_job_that_was_accepted_when_the_task_was_killed_is_canceled(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    cluster.add(JOB, JobStatus.RUNNING)
    operator = task()
    operator._killed = True
    with pytest.raises(YarnflowTaskError, match="was ended while"):
        operator.execute(context)
    assert cluster.job(JOB).status is JobStatus.CANCELED


@pytest.mark.parametrize("on_kill", ["cancel", "savepoint", "leave"])
def test_a_killed_task_leaves_the_rest_to_a_process_of_its_own(
    cluster: RestServer, command: FakeCommand, on_kill: str, context: dict[str, Any]
) -> None:
    operator = task(on_kill=on_kill, savepoint_dir="/sp")
    deferred(operator, context)
    command.answers("cancel", {})
    command.answers("stop", error=("CHECKPOINT_FAILED", "no room"))
    before = len(command.calls)
    operator.on_kill()
    wanted = {"cancel": ["cancel"], "savepoint": ["stop", "cancel"], "leave": []}[on_kill]
    while len(command.calls) < before + len(wanted):
        time.sleep(0.01)
    assert command.verbs()[before:] == wanted
