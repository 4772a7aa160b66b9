"""The task that replaces a running job by a new version."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.operators.jobs import PATH, last
from tests.airflow.surroundings import JOB, OTHER, by_kill, listed, new_context, submitted
from yarnflow.airflow.hooks.documents import EndedJob
from yarnflow.airflow.hooks.errors import CommandFailed, JobNotSuccessful, Unreachable, YarnflowTaskError
from yarnflow.airflow.hooks.yarnflow import YarnflowHook
from yarnflow.airflow.operators import restart as restart_module
from yarnflow.airflow.operators.restart import YarnflowRestartOperator
from yarnflow.core.states import JobStatus
from yarnflow.testing.outside.command import DRY_RUN, FakeCommand
from yarnflow.testing.outside.rest_server import RestServer


@pytest.fixture
def cluster(cluster_with_job: RestServer) -> RestServer:
    return cluster_with_job


@pytest.fixture(autouse=True)
def _programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both versions are there."""
    monkeypatch.chdir(tmp_path)
    for name in ("old.py", "new.py"):
        Path(name).touch()


def restart(**arguments: Any) -> YarnflowRestartOperator:
    given = {"application": "new.py", "savepoint_dir": "hdfs:///sp", **arguments}
    return YarnflowRestartOperator(task_id="t", job_key="k", **given)


def new_version(cluster: RestServer, command: FakeCommand, *job_ids: str) -> None:
    """Submits lead to these jobs, one after the other."""
    for job_id in job_ids:
        command.answers("submit", submitted(job_id))
        cluster.add(job_id, JobStatus.RUNNING)


def fails_and_third_version_commits(cluster: RestServer, command: FakeCommand) -> str:
    """The new version fails, what is submitted after it commits: its id."""
    third = "3" * 32
    new_version(cluster, command, OTHER, third)
    cluster.becomes(OTHER, JobStatus.FAILED, ("USER_CODE", "ValueError: bad (new.py:3)"))
    cluster.completes(third, 1)
    return third


def worker_dies_in(of: type, name: str, context: dict[str, Any], **arguments: Any) -> None:
    """A try whose worker is lost where it calls a method."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(of, name, died)
        with pytest.raises(SystemExit):
            restart(**arguments).execute(context)


def died(*_: Any, **__: Any) -> None:
    raise SystemExit


@pytest.mark.parametrize("rolls_back", [False, True])
def test_a_version_that_cannot_be_submitted_stops_no_job(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], rolls_back: bool
) -> None:
    if rolls_back:
        command.answers(DRY_RUN, {})
    command.answers(DRY_RUN, error=("PROGRAM_SYNTAX", "line 1: invalid syntax"))
    program = "old.py" if rolls_back else "new.py"
    said = f"^{program} cannot be submitted, so the job of the key k goes on: line 1: invalid syntax$"
    with pytest.raises(YarnflowTaskError, match=said):
        restart(rollback_application="old.py", parallelism=3, options={"c": 1}).execute(context)
    assert "stop" not in command.verbs()
    looked = [call.arguments for call in command.calls if call.verb == DRY_RUN]
    assert looked[0][-3:] == ["-p", "3", "new.py"] and {"-Dc=1", "-d", "--dry-run"} <= set(looked[0])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"commit_timeout": "300"}, "commit_timeout='300' is no number of seconds above 0, and no timedelta"),
        ({"commit_timeout": timedelta()}, "commit_timeout=0.0 is no number of seconds"),
        ({"files": ["nope.zip"]}, "there is no file nope.zip on this worker; the job of the key k goes on"),
    ],
)
def test_arguments_that_are_none_stop_no_job(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(YarnflowTaskError, match=said):
        restart(**arguments).execute(context)
    assert "stop" not in command.verbs()


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
    third = fails_and_third_version_commits(cluster, command)
    task = restart(rollback_application="old.py", rollback_args=["--v", "1"])
    said = f"from {PATH}, did not commit.*ValueError: bad.*old.py runs again from there as job {third}"
    with pytest.raises(JobNotSuccessful, match=said):
        task.execute(context)
    assert cluster.job(third).status is JobStatus.RUNNING
    assert last(command, "submit")[-5:] == ["--restore", PATH, "old.py", "--v", "1"]


def test_a_new_version_that_does_not_commit_is_canceled(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    command.answers("list", listed())
    new_version(cluster, command, OTHER)
    with pytest.raises(JobNotSuccessful, match="has no checkpoint after 0.1 s.*nothing runs now"):
        restart(commit_timeout=0.1).execute(context)
    assert cluster.job(OTHER).status is JobStatus.CANCELED


def test_a_new_version_that_fails_and_nothing_to_roll_back_to(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    command.answers("list", listed())
    new_version(cluster, command, OTHER)
    cluster.becomes(OTHER, JobStatus.FAILED, ("USER_CODE", "ValueError: bad (new.py:3)"))
    said = f"from {PATH}, did not commit.*ValueError: bad.*nothing runs now, start it again from"
    with pytest.raises(JobNotSuccessful, match=said):
        restart().execute(context)


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({"application": "none.py"}, "no program none.py on this worker; the job of the key k goes on"),
        ({"rollback_application": "none.py"}, "no program none.py on this worker"),
        ({"application_args": "--v 2"}, "application_args='--v 2' is not a list"),
        ({"rollback_application": "old.py", "rollback_args": "--v 1"}, "rollback_args='--v 1' is not a list"),
        ({"options": "a=b"}, "options is a str and not a mapping"),
        ({"files": "a.py"}, "files='a.py' is not a list"),
    ],
)
def test_what_cannot_be_submitted_stops_nothing(
    arguments: dict[str, Any],
    said: str,
    cluster: RestServer,
    command: FakeCommand,
    context: dict[str, Any],
) -> None:
    with pytest.raises(YarnflowTaskError, match=re.escape(said)):
        restart(**arguments).execute(context)
    assert "stop" not in command.verbs()


def test_a_new_version_whose_cluster_is_not_known_now_is_followed_all_the_same(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    command.answers_instead("list", listed(JOB, web_address=cluster.address, job_key="k"))
    command.answers("list", error=("YARN_UNAVAILABLE", "no answer"))
    new_version(cluster, command, OTHER)
    cluster.completes(OTHER, 1)
    assert restart().execute(context) == OTHER


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
    command.answers("submit", error=("SLOT_UNAVAILABLE", "no slots"))
    with pytest.raises(JobNotSuccessful, match="no slots"):
        restart().execute(context)
    command.answers_instead("list", listed())
    command.forget("submit")
    new_version(cluster, command, OTHER)
    cluster.completes(OTHER, 1)
    assert restart().execute(new_context(context["task_state_store"])) == OTHER
    assert command.verbs().count("stop") == 1
    assert context["task_state_store"].values == {}


def test_another_try_waits_for_the_new_version_that_runs(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """The worker died while it waited for the first checkpoint."""
    new_version(cluster, command, OTHER)
    worker_dies_in(YarnflowRestartOperator, "_trouble", context)
    command.answers_instead("list", listed(OTHER, web_address=cluster.address, job_key="k"))
    cluster.completes(OTHER, 1)
    again = new_context(context["task_state_store"])
    assert restart().execute(again) == OTHER
    assert (command.verbs().count("stop"), command.verbs().count("submit")) == (1, 1)
    assert again["ti"].pushed["savepoint"] == PATH


def test_another_try_knows_the_savepoint_of_a_stop_whose_end_was_not_seen(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """The worker died while it waited for the savepoint."""
    worker_dies_in(YarnflowHook, "stop", context)
    cluster.becomes(JOB, JobStatus.FINISHED, stop=(PATH, "0" * 32))
    command.answers_instead("list", listed())
    new_version(cluster, command, OTHER)
    cluster.completes(OTHER, 1)
    assert restart().execute(new_context(context["task_state_store"])) == OTHER
    assert "stop" not in command.verbs()
    assert last(command, "submit")[-3:] == ["--restore", PATH, "new.py"]


def test_another_try_knows_a_new_version_that_nobody_noted(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """The worker died between the cluster's answer and the note."""
    worker_dies_in(YarnflowHook, "submit", context)
    start_ms = int(time.time() * 1000)
    found = listed(OTHER, web_address=cluster.address, job_key="k", start_ms=start_ms)
    command.answers_instead("list", found)
    cluster.add(OTHER, JobStatus.RUNNING)
    cluster.completes(OTHER, 1)
    assert restart().execute(new_context(context["task_state_store"])) == OTHER
    assert (command.verbs().count("stop"), command.verbs().count("submit")) == (1, 0)


def test_what_runs_instead_of_a_version_that_does_not_commit_need_not_be_known(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    new_version(cluster, command, OTHER)
    cluster.becomes(OTHER, JobStatus.FAILED, ("USER_CODE", "ValueError: bad"))
    command.answers("list", error=("YARN_UNAVAILABLE", "no ResourceManager"))
    said = f"from {PATH}, did not commit.*ValueError: bad.*what runs now is not known.*no ResourceManager"
    with pytest.raises(JobNotSuccessful, match=said):
        restart().execute(context)


def test_a_new_version_that_a_task_stops_meanwhile_is_not_rolled_back(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    new_version(cluster, command, OTHER)
    cluster.becomes(OTHER, JobStatus.FINISHED, stop=by_kill(OTHER, "/sp/2"))
    with pytest.raises(JobNotSuccessful, match=f"job {OTHER} was stopped by the end of another task.*/sp/2"):
        restart(rollback_application="old.py").execute(context)
    assert command.verbs().count("submit") == 1


@pytest.mark.parametrize("knows", ["committed", "nobody", "nothing", "lost answer", "yarn"])
def test_a_new_version_that_ended_while_nobody_waited_for_it(
    cluster: RestServer,
    command: FakeCommand,
    context: dict[str, Any],
    knows: str,
) -> None:
    """The worker died: what the new version has committed is not done again without a word."""
    third = "3" * 32
    if knows == "lost answer":
        worker_dies_in(YarnflowHook, "submit", context, rollback_application="old.py")
    else:
        command.answers("submit", submitted(OTHER))
        worker_dies_in(YarnflowRestartOperator, "_trouble", context, rollback_application="old.py")
    command.answers_instead("list", listed())
    if knows == "lost answer":
        start_ms = int(time.time() * 1000)
        command.answers("list", listed(OTHER, status="FAILED", job_key="k", start_ms=start_ms))
    if knows == "yarn":
        command.answers_instead("info", error=("APPLICATION_FAILED", "killed by the user"))
    elif knows != "nobody":
        cluster.add(OTHER)
        if knows != "nothing":
            cluster.completes(OTHER, 1)
        cluster.becomes(OTHER, JobStatus.FAILED, ("USER_CODE", "ValueError: bad"))
    command.forget("submit")
    new_version(cluster, command, third)
    cluster.completes(third, 1)
    before = command.verbs().count("submit")
    again = new_context(context["task_state_store"])
    said = {
        "nothing": f"did not commit.*ValueError: bad.*old.py runs again from there as job {third}",
        "yarn": f"job {OTHER}, may have committed, and ended FAILED.*nothing runs now",
        "nobody": f"job {OTHER}, may have committed.*nothing runs now.*from the savepoint {PATH}",
    }.get(knows, f"job {OTHER}, has committed, and ended FAILED.*nothing runs now.*from the savepoint {PATH}")
    with pytest.raises(JobNotSuccessful, match=said):
        restart(rollback_application="old.py").execute(again)
    assert command.verbs().count("submit") - before == (1 if knows == "nothing" else 0)


def test_a_savepoint_from_which_the_old_version_went_on_is_not_used_again(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    third = fails_and_third_version_commits(cluster, command)
    with pytest.raises(JobNotSuccessful, match=f"as job {third}"):
        restart(rollback_application="old.py").execute(context)
    assert context["task_state_store"].values == {}


def test_a_restart_that_is_killed_while_it_submits_is_not_rolled_back(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = restart(rollback_application="old.py")

    def killed(*_: Any) -> str:
        operator.on_kill()
        raise CommandFailed("", "the command yarnflow ended with status 143")

    monkeypatch.setattr(operator, "_start", killed)
    with pytest.raises(CommandFailed, match="143"):
        operator.execute(context)
    assert context["task_state_store"].values["yarnflow_restart"]["savepoint"] == PATH


def test_a_savepoint_that_cannot_be_taken_leaves_the_old_version(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    command.answers_instead("stop", error=("CHECKPOINT_FAILED", "no room"))
    with pytest.raises(CommandFailed, match="no room"):
        restart().execute(context)
    assert cluster.job(JOB).status is JobStatus.RUNNING
    assert "submit" not in command.verbs()


@pytest.mark.parametrize("answer", ["lost", "several", "said"])
def test_jobs_of_a_new_version_whose_submit_failed_are_ended(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], answer: str
) -> None:
    """The program fails behind its first job, or nobody heard that it was accepted: its key is free again."""
    third = "3" * 32
    if answer == "lost":
        command.answers("submit", error=("", "killed"))
        start_ms = int(time.time() * 1000)
        command.answers("list", listed(OTHER, web_address=cluster.address, job_key="k", start_ms=start_ms))
    elif answer == "said":
        command.answers("submit", submitted(OTHER), error=("USER_CODE", "ValueError: bad"))
    else:
        command.answers("submit", submitted(OTHER, "4" * 32))
        cluster.add("4" * 32, JobStatus.RUNNING)
    cluster.add(OTHER, JobStatus.RUNNING)
    new_version(cluster, command, third)
    cluster.completes(third, 1)
    why = {"lost": "killed", "said": "ValueError: bad", "several": "a restart is for programs with one job"}
    said = f"did not commit .{why[answer]}.*old.py runs again from there as job {third}"
    with pytest.raises(JobNotSuccessful, match=said):
        restart(rollback_application="old.py").execute(context)
    assert cluster.job(OTHER).status is JobStatus.CANCELED
    assert answer != "several" or cluster.job("4" * 32).status is JobStatus.CANCELED


def test_one_of_several_jobs_of_a_program_is_not_stopped(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    document = listed(JOB, OTHER, web_address=cluster.address, job_key="k")
    document["jobs"][1]["job_key"] = "k#2"
    command.answers_instead("list", document)
    with pytest.raises(YarnflowTaskError, match="key k is one of several of its program.*it goes on"):
        restart().execute(context)
    assert "stop" not in command.verbs()


def test_a_new_version_of_which_nobody_knows_how_it_ended_is_rolled_back(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """It took its cluster along."""
    third = "3" * 32
    new_version(cluster, command, third)
    cluster.completes(third, 1)
    command.answers_instead("submit", submitted(OTHER))
    command.answers("submit", submitted(third))
    said = f"gone with its cluster.*old.py runs again from there as job {third}"
    with pytest.raises(JobNotSuccessful, match=said):
        restart(rollback_application="old.py").execute(context)


def test_the_old_version_is_not_taken_for_the_new_one(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    """It is as young, and nobody heard whether the new one was accepted."""
    worker_dies_in(YarnflowHook, "submit", context)
    command.answers_instead("list", listed())
    start_ms = int(time.time() * 1000)
    command.answers("list", listed(JOB, status="FINISHED", job_key="k", start_ms=start_ms))
    cluster.completes(JOB, 1)
    cluster.becomes(JOB, JobStatus.FINISHED, stop=(PATH, "0" * 32))
    new_version(cluster, command, OTHER)
    cluster.completes(OTHER, 1)
    assert restart().execute(new_context(context["task_state_store"])) == OTHER


def test_links_are_those_of_the_new_version_though_nobody_knows_where_it_is(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any]
) -> None:
    new_version(cluster, command, OTHER)
    cluster.completes(OTHER, 1)
    command.answers("list", listed())
    assert restart().execute(context) == OTHER
    assert (context["ti"].pushed["job_id"], context["ti"].pushed["rest_url"]) == (OTHER, "")


def test_a_cluster_that_goes_with_the_new_version_does_not_stop_the_roll_back(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers that the job is being canceled, and then nothing for longer than is waited."""
    monkeypatch.setattr(restart_module, "_LOOK_AGAIN_S", 0.01)
    monkeypatch.setattr(restart_module, "_ENDS_WITHIN_S", 0.05)
    third = fails_and_third_version_commits(cluster, command)
    asked = iter(range(100))

    def state(hook: YarnflowHook, job_id: str) -> EndedJob:
        if next(asked) < 5:
            return EndedJob(job_id, "counts", JobStatus.CANCELLING)
        raise Unreachable("no REST interface answers")

    monkeypatch.setattr(YarnflowHook, "state", state)
    with pytest.raises(JobNotSuccessful, match=f"old.py runs again from there as job {third}"):
        restart(rollback_application="old.py").execute(context)
    assert next(asked) > 6, "it was looked at again"


def test_a_roll_back_that_cannot_be_noted_is_not_begun(
    cluster: RestServer, command: FakeCommand, context: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next try would take the old version for the new one."""
    command.answers("submit", error=("STATE_INCOMPATIBLE", "other operators"))
    new_version(cluster, command, "3" * 32)
    store = context["task_state_store"]
    known = store.set

    def fail(key: str, value: Any, **more: Any) -> None:
        if "submit" in command.verbs():
            raise RuntimeError("API_SERVER_ERROR")
        known(key, value, **more)

    monkeypatch.setattr(store, "set", fail)
    with pytest.raises(RuntimeError, match="API_SERVER_ERROR"):
        restart(rollback_application="old.py").execute(context)
    submits = [call.arguments for call in command.calls if call.verb == "submit"]
    assert len(submits) == 1 and submits[0][-1] == "new.py"
