"""A task that is killed: by a user, or with its worker."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowTaskTimeout

from tests.airflow.operators.submitting import deferred, task
from tests.airflow.surroundings import JOB, OTHER, Connections, by_kill, listed, new_context
from tests.patience import PATIENCE
from yarnflow.airflow.hooks.documents import left_by_kill
from yarnflow.airflow.hooks.errors import CommandFailed, JobNotSuccessful, YarnflowTaskError
from yarnflow.airflow.hooks.questions import Stop
from yarnflow.airflow.operators.submit import YarnflowSubmitOperator
from yarnflow.core.states import JobStatus
from yarnflow.testing.outside.command import FakeCommand
from yarnflow.testing.outside.rest_server import RestServer


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


def executed_until_killed(
    operator: YarnflowSubmitOperator,
    context: dict[str, Any],
    cluster: RestServer,
    asked: Callable[[], bool],
    end: Callable[[], None],
) -> None:
    """Execute a task, kill it once it follows its job, and end the job once that was asked for."""

    def end_when_asked() -> None:
        while not asked():
            time.sleep(0.01)
        end()

    ending = threading.Thread(target=end_when_asked)
    ending.start()
    killer = killed_when(operator, lambda: any(path.endswith("/events") for _, path in cluster.requests))
    with pytest.raises(YarnflowTaskError, match="was ended"):
        operator.execute(context)
    killer.join()
    ending.join()
    assert context["task_state_store"].values["yarnflow_job"]["ending"] is True


def hangs(command: FakeCommand, verb: str) -> None:
    command.answers_instead(verb, hangs=True)


def wait_for_cancel(command: FakeCommand) -> None:
    """A process that outlives the worker calls it."""
    while "cancel" not in command.verbs():
        time.sleep(0.01)


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


def test_a_task_killed_while_it_logs_cancels_its_jobs(
    cluster: RestServer, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log has a lock, which the thread that handles the signal may hold already."""
    lock, told = threading.Lock(), []

    class Log:
        def info(self, text: str, *arguments: object) -> None:
            assert lock.acquire(timeout=PATIENCE.thread_s), "the handler waits for what it has interrupted"
            lock.release()
            told.append(text % arguments)

        warning = error = debug = info

    operator = task()
    deferred(operator, context)
    operator._jobs = (JOB, OTHER)
    cluster.add(JOB, JobStatus.RUNNING)
    cluster.add(OTHER, JobStatus.RUNNING)
    operator.hook.access(JOB)
    operator.hook.access(OTHER)
    monkeypatch.setattr(YarnflowSubmitOperator, "log", Log())
    with lock:
        operator.on_kill()
        assert {cluster.job(job_id).status for job_id in (JOB, OTHER)} == {JobStatus.CANCELED}
        assert told == []
    while len(told) < 2:
        time.sleep(0.01)
    assert sorted(told) == [f"Job {job_id} is being canceled." for job_id in (JOB, OTHER)]


@pytest.mark.usefixtures("_signals")
def test_a_task_killed_while_it_submits_takes_the_submit_back(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    hangs(command, "submit")
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
    hangs(command, "submit")
    command.forget("list")
    start_ms = int(time.time() * 1000)
    command.answers("list", listed(JOB, web_address=cluster.address, job_key="k", start_ms=start_ms))
    command.answers("cancel", {})
    operator = task()
    killer = killed_when(operator, lambda: command.hangs)
    with pytest.raises(CommandFailed):
        operator.execute(context)
    killer.join()
    wait_for_cancel(command)


@pytest.mark.usefixtures("_signals")
@pytest.mark.parametrize("choice", ["fail", "replace"])
def test_a_young_job_of_another_run_is_not_ended(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], choice: str
) -> None:
    """It has the key when the task is killed, which has not got as far."""
    hangs(command, "submit")
    start_ms = int(time.time() * 1000)
    young = listed(OTHER, web_address=cluster.address, job_key="k", start_ms=start_ms)
    command.answers_instead("list", young)
    cluster.add(OTHER, JobStatus.RUNNING)
    operator = task(on_existing=choice)
    killer = killed_when(operator, lambda: command.hangs)
    with pytest.raises(CommandFailed, match="ended with status 143"):
        operator.execute(context)
    killer.join()
    assert cluster.job(OTHER).status is JobStatus.RUNNING and "cancel" not in command.verbs()


@pytest.mark.usefixtures("_signals")
def test_a_task_killed_while_it_asks_where_its_job_runs_ends_it(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """What is broken off is a question, and not the submit."""
    hangs(command, "list")
    command.answers("cancel", {})
    cluster.add(JOB, JobStatus.RUNNING)
    operator = task()
    killer = killed_when(operator, lambda: command.hangs)
    with pytest.raises(YarnflowTaskError, match="was ended"):
        operator.execute(context)
    killer.join()
    wait_for_cancel(command)
    assert [call.arguments[-1] for call in command.calls if call.verb == "cancel"] == [JOB]


@pytest.mark.usefixtures("_signals")
def test_a_task_killed_while_it_looks_for_the_job_of_an_earlier_try_goes_no_further(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    deferred(task(), context)
    cluster.add(JOB, JobStatus.CANCELLING)
    operator = task()
    killer = killed_when(operator, lambda: any(path.endswith(JOB) for _, path in cluster.requests))
    with pytest.raises(YarnflowTaskError, match="was ended"):
        operator.execute(new_context(context["task_state_store"]))
    killer.join()
    assert command.verbs().count("submit") == 1


def test_a_task_killed_while_it_looks_at_its_job_ends_it(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    deferred(task(), context)
    command.answers_instead("token", error=("YARN_UNAVAILABLE", "no ResourceManager"))
    command.answers_instead("info", error=("YARN_UNAVAILABLE", "no ResourceManager"))
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
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.add(JOB, JobStatus.RUNNING)
    command.answers("cancel", {})
    operator = task()
    answered = operator._run_submit

    def killed_meanwhile(*arguments: Any) -> Any:
        answer = answered(*arguments)
        operator.on_kill()
        return answer

    monkeypatch.setattr(operator, "_run_submit", killed_meanwhile)
    with pytest.raises(YarnflowTaskError, match="was ended while"):
        operator.execute(context)
    wait_for_cancel(command)


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


@pytest.mark.usefixtures("_signals")
def test_a_job_that_a_kill_has_stopped_is_not_done(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """A worker that is told to end may live long enough to see its job FINISHED."""
    cluster.add(JOB, JobStatus.RUNNING)
    command.answers("stop", {"job_id": JOB, "savepoint_path": "/sp/1", "request_id": ""})
    operator = task(deferrable=False, on_kill="savepoint")

    def stopped() -> None:
        cluster.becomes(JOB, JobStatus.FINISHED, stop=by_kill(JOB))

    executed_until_killed(operator, context, cluster, lambda: "stop" in command.verbs(), stopped)


def test_a_kill_does_not_break_off_a_stop_that_has_begun(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """The savepoint at a time-out: a process that outlives the worker waits for the same one."""
    cluster.add(JOB, JobStatus.RUNNING)
    operator = task(on_kill="savepoint")
    deferred(operator, context)
    hook_stop = operator.hook.stop

    def stop(*arguments: Any, **options: Any) -> str:
        operator.on_kill()
        return hook_stop(*arguments, **options)

    operator.hook.stop = stop  # type: ignore[method-assign]
    command.answers("stop", {"job_id": JOB, "savepoint_path": "/sp/1", "request_id": ""})
    with pytest.raises(AirflowTaskTimeout, match="stopped with the savepoint /sp/1"):
        operator.execute_complete(context, {"job_id": JOB, "status": "timeout"}, jobs=[JOB])
    while command.verbs().count("stop") < 2:
        time.sleep(0.01)
    asked = [call.arguments for call in command.calls if call.verb == "stop"]
    (request_id,) = {arguments[arguments.index("--request-id") + 1] for arguments in asked}
    assert left_by_kill(JOB, Stop("/sp/1", request_id)) == "/sp/1"
    assert cluster.job(JOB).status is JobStatus.RUNNING


@pytest.mark.parametrize("wait_for", ["none", "running", "checkpoint"])
def test_a_kill_behind_the_success_leaves_the_stream(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], wait_for: str
) -> None:
    """Airflow ends workers whose callbacks take too long."""
    cluster.add(JOB, JobStatus.RUNNING)
    cluster.completes(JOB, 1)
    operator = task(deferrable=False, wait_for=wait_for)
    operator.execute(context)
    before = command.verbs()
    operator.on_kill()
    assert (cluster.job(JOB).status, command.verbs()) == (JobStatus.RUNNING, before)


def test_a_kill_uses_the_addresses_of_the_connection(
    connections: Connections, cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """A process of its own would end with its container."""
    connections.add(
        command=str(command.path), host=cluster.address, password="t0p-s3cret", target="yarn-session"
    )
    cluster.add(JOB, JobStatus.RUNNING)
    operator = task()
    deferred(operator, context)
    operator.on_kill()
    assert cluster.job(JOB).status is JobStatus.CANCELED
    assert "cancel" not in command.verbs()


@pytest.mark.usefixtures("_signals")
@pytest.mark.parametrize("on_kill", ["cancel", "savepoint"])
def test_what_comes_of_the_end_of_its_job_is_no_success(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], on_kill: str
) -> None:
    """Its savepoint is a checkpoint, too."""
    cluster.add(JOB, JobStatus.RUNNING)
    operator = task(deferrable=False, on_kill=on_kill, wait_for="checkpoint")
    command.answers("stop", {"job_id": JOB, "savepoint_path": "/sp/1", "request_id": ""})
    command.answers("cancel", {})

    def ended() -> None:
        cluster.completes(JOB, 1, savepoint="/sp/1")
        cluster.becomes(JOB, JobStatus.FINISHED, stop=by_kill(JOB))

    # what is known of the cluster is taken from it, so that the command ends the job
    operator.hook.cancel_hurriedly = refuse  # type: ignore[assignment,method-assign]
    asked = {"stop", "cancel"}
    executed_until_killed(operator, context, cluster, lambda: bool(asked & set(command.verbs())), ended)


def refuse(*_: Any) -> None:
    raise CommandFailed("", "nobody answers")
