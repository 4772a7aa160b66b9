"""Another try of a task that has a job run: it knows the job of the one before."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowTaskTimeout, TaskDeferred

from tests.airflow.operators.submitting import deferred, task
from tests.airflow.surroundings import (
    BY_HAND,
    JOB,
    OTHER,
    Connections,
    by_kill,
    info,
    listed,
    new_context,
    submitted,
)
from yarnflow.airflow.hooks.errors import CommandFailed, YarnflowTaskError
from yarnflow.airflow.operators import earlier
from yarnflow.core.states import JobStatus
from yarnflow.testing.outside.command import FakeCommand
from yarnflow.testing.outside.rest_server import RestServer


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
    command.answers_instead("info", info(JOB, "FINISHED"))
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
        command.answers_instead("info", info(JOB, status))
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
    command.answers_instead("submit", submitted(OTHER, attached=True))
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
    cluster.add(JOB, JobStatus.RUNNING)
    deferred(task(on_existing="fail"), context)
    assert command.verbs().count("submit") == (0 if is_own else 1)


def test_a_worker_that_died_while_its_submit_was_taken_back(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """The job that had been accepted is being canceled: it is not this try's."""
    now_ms = int(time.time() * 1000)
    context["task_state_store"].set("yarnflow_job", {"job_key": "k", "since_ms": now_ms})
    found = listed(OTHER, job_key="k", start_ms=now_ms + 1, web_address=cluster.address)
    command.answers_instead("list", found)
    command.answers("list", listed(JOB, web_address=cluster.address, job_key="k"))
    cluster.add(OTHER, JobStatus.CANCELLING)
    threading.Timer(0.1, lambda: cluster.becomes(OTHER, JobStatus.CANCELED)).start()
    assert deferred(task(), context).trigger.serialize()[1]["job_id"] == JOB
    assert command.verbs().count("submit") == 1


def test_a_job_that_a_try_has_stopped_itself_is_not_done(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """A job that is stopped with a savepoint is FINISHED, too; the next try goes on from the savepoint."""
    cluster.add(JOB, JobStatus.RUNNING)
    defer = deferred(task(on_kill="savepoint"), context)
    command.answers("stop", {"job_id": JOB, "savepoint_path": "/sp/1", "request_id": ""})
    with pytest.raises(AirflowTaskTimeout, match="it is stopped with the savepoint /sp/1"):
        task(on_kill="savepoint").execute_complete(
            context, {"job_id": JOB, "status": "timeout"}, **defer.kwargs
        )
    cluster.becomes(JOB, JobStatus.FINISHED, stop=by_kill(JOB))
    command.answers_instead("submit", submitted(OTHER))
    again = new_context(context["task_state_store"])
    assert deferred(task(on_kill="savepoint"), again).trigger.serialize()[1]["job_id"] == OTHER
    assert restored_from(command) == "/sp/1"
    # and when that one fails, from its own newest state
    cluster.add(OTHER, JobStatus.FAILED)
    deferred(task(on_kill="savepoint"), new_context(context["task_state_store"]))
    assert restored_from(command) == ""


def test_a_job_that_an_earlier_try_has_begun_to_stop_has_its_end_first(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """By a process that outlives the worker, and tells nobody of the savepoint."""
    record = {"job_key": "k", "since_ms": 1, "jobs": [OTHER], "ending": True}
    context["task_state_store"].set("yarnflow_job", record)
    cluster.add(OTHER, JobStatus.RUNNING)

    def end() -> None:
        cluster.becomes(OTHER, JobStatus.FINISHED, stop=by_kill(OTHER))

    threading.Timer(0.1, end).start()
    assert deferred(task(), context).trigger.serialize()[1]["job_id"] == JOB
    assert restored_from(command) == "/sp/1"


@pytest.mark.parametrize("on_kill", ["cancel", "savepoint"])
def test_a_job_that_has_finished_before_an_earlier_try_could_end_it_is_done(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], on_kill: str
) -> None:
    record = {"job_key": "k", "since_ms": 1, "jobs": [JOB], "ending": True}
    context["task_state_store"].set("yarnflow_job", record)
    cluster.add(JOB, JobStatus.FINISHED)
    assert task(on_kill=on_kill).execute(context) == JOB
    assert "submit" not in command.verbs()


@pytest.mark.parametrize("cluster_is_gone", [False, True])
@pytest.mark.parametrize("by", ["kill", "hand"])
def test_a_job_that_the_end_of_a_task_has_stopped_is_gone_on_with(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], by: str, cluster_is_gone: bool
) -> None:
    """The try that was killed could note nothing.  What a person has stopped is done."""
    cluster.add(JOB, JobStatus.RUNNING)
    deferred(task(on_kill="savepoint"), context)
    stop = by_kill(JOB) if by == "kill" else BY_HAND
    if cluster_is_gone:
        cluster.forget(JOB)
        command.answers_instead("info", info(JOB, "FINISHED", stop=stop))
    else:
        cluster.becomes(JOB, JobStatus.FINISHED, stop=stop)
    again = new_context(context["task_state_store"])
    if by == "kill":
        deferred(task(on_kill="savepoint"), again)
        assert restored_from(command) == "/sp/1"
    else:
        assert task(on_kill="savepoint").execute(again) == JOB
        assert command.verbs().count("submit") == 1


@pytest.mark.parametrize("deferrable", [True, False])
def test_a_stop_of_an_earlier_try_that_is_seen_to_end_is_gone_on_with(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], deferrable: bool
) -> None:
    """The worker was killed before it could note anything, and the savepoint takes its time."""
    cluster.add(JOB, JobStatus.RUNNING)
    deferred(task(on_kill="savepoint"), context)
    command.answers_instead("submit", submitted(OTHER))
    cluster.add(OTHER, JobStatus.FINISHED)
    again = new_context(context["task_state_store"])
    operator = task(on_kill="savepoint", deferrable=deferrable)
    if deferrable:
        defer = deferred(operator, again)
        cluster.becomes(JOB, JobStatus.FINISHED, stop=by_kill(JOB))
        events = asyncio.run(all_events(defer.trigger))
        with pytest.raises(TaskDeferred) as raised:
            operator.execute_complete(again, events[0], **defer.kwargs)
        assert raised.value.trigger.serialize()[1]["job_id"] == OTHER
    else:
        end = threading.Timer(
            0.2, lambda: cluster.becomes(JOB, JobStatus.FINISHED, stop=by_kill(JOB))
        )
        end.start()
        assert operator.execute(again) == OTHER
        end.join()
    assert restored_from(command) == "/sp/1"


async def all_events(trigger: Any) -> list[dict[str, Any]]:
    return [event.payload async for event in trigger.run()]


def test_a_stop_whose_savepoint_could_not_be_recorded_is_gone_on_with_from_what_is_left(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    cluster.add(JOB, JobStatus.FINISHED)
    deferred(task(on_kill="savepoint"), context)
    cluster.becomes(JOB, JobStatus.FINISHED, stop=by_kill(JOB, path=""))
    deferred(task(on_kill="savepoint"), new_context(context["task_state_store"]))
    assert restored_from(command) == "latest"


@pytest.mark.parametrize("on_kill", ["cancel", "savepoint"])
def test_when_nobody_knows_how_a_job_ended_that_may_have_been_stopped_its_newest_state_is_taken(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], on_kill: str
) -> None:
    deferred(task(on_kill=on_kill), context)
    deferred(task(on_kill=on_kill), new_context(context["task_state_store"]))
    assert restored_from(command) == ("latest" if on_kill == "savepoint" else "")


@pytest.mark.parametrize("on_kill", ["cancel", "savepoint"])
def test_several_jobs_of_which_nobody_knows_the_end_are_submitted_again(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], on_kill: str
) -> None:
    command.answers_instead("submit", submitted(JOB, OTHER))
    deferred(task(on_kill=on_kill), context)
    deferred(task(on_kill=on_kill), new_context(context["task_state_store"]))
    assert restored_from(command) == ""


def first_of_two_is_stopped(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], other: JobStatus
) -> None:
    """A try with two jobs; its end stops the first one with a savepoint."""
    command.answers_instead("submit", submitted(JOB, OTHER))
    cluster.add(JOB, JobStatus.RUNNING)
    cluster.add(OTHER, other)
    deferred(task(on_kill="savepoint"), context)
    cluster.becomes(JOB, JobStatus.FINISHED, stop=by_kill(JOB))


def test_several_jobs_of_a_program_that_were_stopped_are_not_begun_anew_without_a_word(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    first_of_two_is_stopped(cluster, command, context, JobStatus.RUNNING)
    again = new_context(context["task_state_store"])
    # the other one lives, and is not begun a second time
    defer = deferred(task(on_kill="savepoint"), again)
    (event,) = asyncio.run(all_events(defer.trigger))
    command.answers("stop", {"job_id": OTHER, "savepoint_path": "/sp/2", "request_id": ""})
    with pytest.raises(YarnflowTaskError, match=f"has stopped {JOB} of a program with several jobs"):
        task(on_kill="savepoint").execute_complete(again, event, **defer.kwargs)
    cluster.becomes(OTHER, JobStatus.FINISHED, stop=by_kill(OTHER))
    with pytest.raises(YarnflowTaskError, match=f"has stopped {JOB} {OTHER} of.*restore='none'"):
        task(on_kill="savepoint").execute(again)
    deferred(task(on_kill="savepoint", restore="none"), again)
    assert restored_from(command) == "none"


def test_several_jobs_of_which_one_was_stopped_and_one_canceled(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    first_of_two_is_stopped(cluster, command, context, JobStatus.CANCELED)
    with pytest.raises(YarnflowTaskError, match=f"has stopped {JOB} of a program with several jobs"):
        task(on_kill="savepoint").execute(new_context(context["task_state_store"]))


def test_a_savepoint_that_is_complete_is_not_lost_when_the_job_is_canceled_all_the_same(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    record = {"job_key": "k", "since_ms": 1, "jobs": [JOB], "ending": True, "savepoint": "/sp/1"}
    context["task_state_store"].set("yarnflow_job", record)
    cluster.add(JOB, JobStatus.CANCELED)
    deferred(task(on_kill="savepoint"), context)
    assert restored_from(command) == "/sp/1"


def restored_from(command: FakeCommand) -> str:
    """What the last submit starts from; empty = it does not say."""
    arguments = [call.arguments for call in command.calls if call.verb == "submit"][-1]
    return arguments[arguments.index("--restore") + 1] if "--restore" in arguments else ""


def test_a_job_that_an_earlier_try_could_not_end_is_followed_again(
    cluster: RestServer, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(earlier, "_STOPS_WITHIN_S", 0.05)
    record = {"job_key": "k", "since_ms": 1, "jobs": [OTHER], "ending": True}
    context["task_state_store"].set("yarnflow_job", record)
    cluster.add(OTHER, JobStatus.RUNNING)
    assert deferred(task(), context).trigger.serialize()[1]["job_id"] == OTHER
    assert context["task_state_store"].values["yarnflow_job"]["ending"] is False


def test_a_refused_submit_does_not_lose_the_savepoint_of_the_try_before(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    record = {"job_key": "k", "since_ms": 1, "jobs": [JOB], "ending": True, "savepoint": "/sp/1"}
    context["task_state_store"].set("yarnflow_job", record)
    cluster.add(JOB)
    cluster.becomes(JOB, JobStatus.FINISHED, stop=by_kill(JOB))
    command.answers_instead("submit", error=("SLOT_UNAVAILABLE", "no slots"))
    command.answers("submit", submitted(OTHER))
    with pytest.raises(CommandFailed, match="no slots"):
        task().execute(context)
    deferred(task(), new_context(context["task_state_store"]))
    assert restored_from(command) == "/sp/1"


@pytest.mark.parametrize("on_existing", ["attach", "fail"])
def test_a_worker_that_died_and_clusters_that_do_not_answer(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], on_existing: str
) -> None:
    """A job of the key that there may be is attached to; to another submit it would be a stranger's."""
    context["task_state_store"].set("yarnflow_job", {"job_key": "k", "since_ms": 1})
    command.answers_instead("list", error=("RPC_UNAVAILABLE", "nobody leads"))
    if on_existing == "attach":
        deferred(task(on_existing=on_existing), context)
    else:
        with pytest.raises(CommandFailed, match="nobody leads"):
            task(on_existing=on_existing).execute(context)
    assert command.verbs().count("submit") == (1 if on_existing == "attach" else 0)


def test_a_worker_that_died_with_the_job_that_ran_in_it(
    connections: Connections, command: FakeCommand, context: dict[str, Any]
) -> None:
    connections.add(command=str(command.path), target="local")
    context["task_state_store"].set("yarnflow_job", {"job_key": "k", "since_ms": 1})
    command.answers("submit", submitted(JOB, target="local"))
    command.answers("list", error=("CONFIG", "no cluster of this user runs"))
    assert task().execute(context) == JOB
