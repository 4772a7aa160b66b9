"""The task that has a job run: its submit, its wait, its end."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, XComArg
from airflow.sdk.exceptions import TaskDeferred

from tests.airflow.operators.submitting import deferred, task
from tests.airflow.surroundings import JOB, OTHER, Connections, submitted
from yarnflow.airflow.hooks.errors import (
    CommandFailed,
    ConnectionUnusable,
    JobNotSuccessful,
    YarnflowTaskError,
)
from yarnflow.airflow.operators.restart import YarnflowRestartOperator
from yarnflow.airflow.operators.submit import YarnflowSubmitOperator
from yarnflow.airflow.triggers.job import YarnflowJobTrigger
from yarnflow.core.states import JobStatus
from yarnflow.testing.outside.command import FakeCommand
from yarnflow.testing.outside.rest_server import RestServer


def test_templates_may_give_numbers_and_nothing(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """With ``render_template_as_native_obj``."""
    operator = task(job_key=7, name=20260101, target=None, restore=None, parallelism=0)
    operator.application = Path("job.py")  # type: ignore[assignment]
    deferred(operator, context)
    call = next(call for call in command.calls if call.verb == "submit")
    assert call.arguments[2:] == [
        *("-t", "yarn-per-job", "-d", "--job-key", "7", "--on-existing", "attach"),
        *("--name", "20260101", "-p", "0", "job.py"),
    ]
    with pytest.raises(YarnflowTaskError, match="job_key: .* has a character that cannot be passed on"):
        task(job_key="a\nb").execute(context)
    with pytest.raises(YarnflowTaskError, match="application_args: .* has a character that cannot"):
        task(application_args=["a\0b"]).execute(context)


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
        "yarn_page": "",
        "rest_url": cluster.address,
    }
    call = next(call for call in command.calls if call.verb == "submit")
    assert call.arguments == [
        *("submit", "--json", "-Dparallelism.default=2", "-t", "yarn-per-job", "-d", "--job-key", "k"),
        *("--on-existing", "attach", "--restore", "latest", "--name", "counts", "-p", "4"),
        *("-pyfs", "a.py,b.zip", "job.py", "--n", "3"),
    ]


@pytest.mark.parametrize("trouble", ["token", "address"])
def test_what_nobody_can_follow_is_not_submitted(
    connections: Connections,
    command: FakeCommand,
    cluster: RestServer,
    context: dict[str, Any],
    trouble: str,
) -> None:
    connections.add(
        command=str(command.path), host=cluster.address, password="another", target="yarn-session"
    )
    if trouble == "address":
        cluster.close()
    said = {"token": "its REST token is not accepted", "address": "no REST interface answers"}[trouble]
    with pytest.raises(YarnflowTaskError, match=said):
        task().execute(context)
    assert command.verbs() == []


def test_options_that_name_a_cluster_that_runs_are_of_the_connection(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    own = {"high-availability.type": "zookeeper"}
    assert task(wait_for="none", options=own).execute(context) == JOB
    with pytest.raises(YarnflowTaskError, match="option high-availability.type says where the job is found"):
        task(target="remote", options=own).execute(context)
    assert command.verbs().count("submit") == 1


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


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({"application_args": "--day 1"}, "application_args='--day 1' is not a list"),
        ({"files": "a.py"}, "files='a.py' is not a list"),
        ({"options": "parallelism.default=2"}, "options is a str and not a mapping of keys to values"),
        ({"options": {"yarn.staging-directory": "/x"}}, "put it into options of the connection"),
        # a template that rendered to nothing
        ({"job_key": ""}, "job_key is empty"),
    ],
)
def test_an_argument_of_another_form_is_refused_before_anything_is_submitted(
    arguments: dict[str, Any],
    said: str,
    cluster: RestServer,
    command: FakeCommand,
    context: dict[str, Any],
) -> None:
    operator = task()
    for name, value in arguments.items():
        setattr(operator, name, value)
    with pytest.raises(YarnflowTaskError, match=said):
        operator.execute(context)
    assert command.verbs() == []


def test_a_secret_in_a_dag_is_refused_where_it_is_read() -> None:
    """It would be stored with the DAG, and shown by Rendered Template."""
    options = {"spark.hadoop.fs.azure.account.key.x": "s3cret"}
    for operator in (YarnflowSubmitOperator, YarnflowRestartOperator):
        with pytest.raises(ValueError, match="account.key.x is a secret") as raised:
            operator(task_id="t", application="job.py", job_key="k", options=options)
        assert "s3cret" not in str(raised.value)
    for value in ("{{ conn.azure.password }}", "", None):
        task(options={"spark.hadoop.fs.azure.account.key.x": value})


def test_an_empty_connection_leaves_the_target_to_the_configuration(
    connections: Connections, command: FakeCommand, context: dict[str, Any]
) -> None:
    """Which is local if nobody says another one: such a job is not detached."""
    connections.add(command=str(command.path))
    command.answers("submit", submitted(JOB, target="local"))
    assert task().execute(context) == JOB
    assert "-d" not in command.calls[0].arguments


def test_arguments_may_be_results_of_other_tasks() -> None:
    """They are there when the task runs, and not when its DAG is read."""
    with DAG("d"):
        before = EmptyOperator(task_id="before")
        arguments = {name: XComArg(before) for name in ("application_args", "options", "files")}
        submitting = task(**arguments)
        restarting = YarnflowRestartOperator(
            task_id="r", job_key="k", application="new.py", rollback_args=XComArg(before), **arguments
        )
    assert submitting.upstream_task_ids == restarting.upstream_task_ids == {"before"}


def test_no_such_connection(connections: Connections, context: dict[str, Any]) -> None:
    with pytest.raises(ConnectionUnusable, match="there is no connection nowhere") as raised:
        task(yarnflow_conn_id="nowhere").execute(context)
    assert "\n" not in str(raised.value)
    assert context["task_state_store"].values == {}


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
    command.answers_instead("submit", error=(code, message), details="Traceback")
    with pytest.raises(CommandFailed, match=f"^{message}$"):
        task().execute(context)
    # another try does not take the next job of the key for its own
    assert context["task_state_store"].values == {}


@pytest.mark.parametrize(
    ("code", "message", "said"),
    [
        ("STATE_MISSING", "with --restore none, or -s hdfs:///s", "^with restore='none', or restore=hdfs"),
        ("DUPLICATE_JOB", "with --on-existing attach or replace", "^with on_existing='attach' or 'replace'$"),
        ("STATE_DAMAGED", "start it (-s PATH), or without", r"start it .restore=PATH., or without$"),
        ("USER_CODE", "usage: job.py -s PATH", "^usage: job.py -s PATH$"),
        ("PROGRAM_FAILED", "usage: job.py -s PATH", "^usage: job.py -s PATH$"),
    ],
)
def test_what_an_error_advises_is_an_argument_of_the_task(
    cluster: RestServer,
    command: FakeCommand,
    context: dict[str, Any],
    code: str,
    message: str,
    said: str,
) -> None:
    command.answers_instead("submit", error=(code, message))
    with pytest.raises(CommandFailed, match=said) as raised:
        task().execute(context)
    assert raised.value.code == code


def test_jobs_of_a_program_that_fails_behind_its_first_one_do_not_run_on(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    command.answers_instead("submit", submitted(JOB), error=("USER_CODE", "ValueError: bad (job.py:9)"))
    cluster.add(JOB, JobStatus.RUNNING)
    with pytest.raises(CommandFailed, match="job.py:9"):
        task().execute(context)
    assert cluster.job(JOB).status is JobStatus.CANCELED
    assert context["task_state_store"].values == {}


def test_a_job_that_such_a_program_only_found_goes_on(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    command.answers_instead("submit", submitted(JOB, attached=True), error=("USER_CODE", "ValueError: bad"))
    cluster.add(JOB, JobStatus.RUNNING)
    with pytest.raises(CommandFailed):
        task().execute(context)
    assert cluster.job(JOB).status is JobStatus.RUNNING


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
    command.answers_instead("submit", submitted(JOB, OTHER))
    defer = deferred(task(), context)
    assert defer.trigger.serialize()[1]["next_jobs"] == [OTHER]
    event = {"job_id": JOB, "status": "success", "state": "FINISHED", "error": None}
    with pytest.raises(TaskDeferred) as raised:
        task().execute_complete(context, event, **defer.kwargs)
    assert raised.value.trigger.serialize()[1]["job_id"] == OTHER
    done = {**event, "job_id": OTHER}
    assert task().execute_complete(context, done, **raised.value.kwargs) == JOB


def test_when_one_job_of_a_program_fails_the_others_are_ended(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    command.answers_instead("submit", submitted(JOB, OTHER))
    cluster.add(JOB, JobStatus.FAILED)
    cluster.add(OTHER, JobStatus.RUNNING)
    defer = deferred(task(), context)
    event = {"job_id": JOB, "status": "failed", "state": "FAILED", "error": "it broke"}
    with pytest.raises(JobNotSuccessful, match="it broke"):
        task().execute_complete(context, event, **defer.kwargs)
    assert cluster.job(OTHER).status is JobStatus.CANCELED


def test_a_program_on_the_worker_itself(
    connections: Connections, command: FakeCommand, context: dict[str, Any]
) -> None:
    connections.add(command=str(command.path))
    command.answers("submit", submitted(JOB, target="local"))
    assert task(target="local").execute(context) == JOB
    assert "-d" not in command.calls[0].arguments
    assert command.verbs() == ["submit"]


def test_a_task_that_is_told_nothing_but_the_event(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """As by `airflow dags test`."""
    command.answers_instead("submit", submitted(JOB, OTHER))
    cluster.add(JOB, JobStatus.FINISHED)
    deferred(task(), context)
    event = {"job_id": JOB, "status": "success", "state": "FINISHED"}
    with pytest.raises(TaskDeferred) as raised:
        task().execute_complete(context, event)
    assert raised.value.trigger.serialize()[1]["job_id"] == OTHER
    assert task().execute_complete(context, {**event, "job_id": OTHER}) == JOB
    # nothing is kept where there is no store
    assert task().execute_complete({**context, "task_state_store": None}, event) == JOB
