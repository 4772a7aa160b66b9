"""What goes down around a task, or ends it: one job runs, with the right results, or none."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from integration.airflow.jobs import TASK, AirflowOnYarn
from integration.conftest import wait_until
from integration.faults.records import Numbered
from integration.processes import kill_tree
from integration.yarn.masters import MASTER, Masters
from integration.yarn.numbered import assert_each_record_once, await_commits, drain

QUICK: Final = "-Dexecution.micro-batch.interval=1 s"
RUN: Final = "first"


def _ends_well(both: AirflowOnYarn, dag_id: str, job: Numbered, *runs: str, application_id: str = "") -> None:
    """The job is drained: tasks and runs succeed, and all records are there."""
    api = both.airflow.api
    job_id = api.xcom(dag_id, runs[0], TASK, "job_id")
    (application,) = [application_id] if application_id else both.applications()
    savepoint = drain(both.yarn, job, job_id, application)
    for run_id in runs:
        assert api.end_of_run(dag_id, run_id) == "success", api.story(dag_id, run_id)
        left = api.xcoms(dag_id, run_id, TASK)
        assert left["job_id"] == left["return_value"] == job_id
        assert left["state"] == "FINISHED"
    assert_each_record_once(both.yarn, job, savepoint)


def _await_end(both: AirflowOnYarn, job_id: str, application_id: str) -> str:
    """How YARN says that the application ended, which had this job only."""
    assert both.applications() == [application_id]
    return str(both.yarn.ended(application_id)["finalStatus"])


@pytest.mark.gate
def test_worker_triggerer_and_scheduler_are_lost(on_yarn: AirflowOnYarn, tmp_path: Path) -> None:
    """
    1. kill -9 of the worker when YARN has the application, and the submit has not been answered
    2. of the triggerer, and of the scheduler with all workers, while the task is deferred
    """
    airflow, api, dag_id = on_yarn.airflow, on_yarn.airflow.api, "all_is_lost"
    job = Numbered("/tests/airflow-lost")
    on_yarn.add_job(dag_id, job.write_program(tmp_path / "job.py"), QUICK)
    api.trigger(dag_id, RUN)
    # looked for before, as it ends soon after
    worker = airflow.await_worker(dag_id, RUN, TASK)
    application = on_yarn.await_application()
    kill_tree(worker)
    left = on_yarn.await_deferred(dag_id, RUN, tries=2)
    airflow.restart("triggerer")
    airflow.restart("scheduler")
    on_yarn.assert_waits(dag_id, RUN)
    await_commits(on_yarn.yarn, left["job_id"])

    def is_told(state: str) -> bool:
        # on a slow machine Airflow may take another worker for lost
        tries = range(2, api.task(dag_id, RUN, TASK)["try_number"] + 1)
        return any(f"Job {left['job_id']} is {state}" in api.log(dag_id, RUN, TASK, each) for each in tries)

    # before the job is drained: the new triggerer asks for its cluster first
    wait_until(lambda: is_told("RUNNING"), "the new triggerer to hear of the job", pause_s=0.5)
    _ends_well(on_yarn, dag_id, job, RUN, application_id=on_yarn.applications()[-1])
    assert api.task(dag_id, RUN, TASK)["try_number"] >= 2
    assert is_told("FINISHED")
    # where nothing had been accepted, the first submit has taken back its application
    ended = [on_yarn.yarn.ended(each)["finalStatus"] for each in on_yarn.applications()]
    assert ended[-1] == "SUCCEEDED" and "SUCCEEDED" not in ended[:-1]
    print(f"applications: {on_yarn.applications()}, {ended}, the first of them {application}")


@pytest.mark.may_rerun("Airflow's scheduler takes its time")
@pytest.mark.drill
def test_marked_failed_while_deferred(on_yarn: AirflowOnYarn, tmp_path: Path) -> None:
    """The job is canceled: nobody wants it any more."""
    api, dag_id = on_yarn.airflow.api, "marked_failed"
    on_yarn.add_job(dag_id, Numbered("/tests/airflow-marked").write_program(tmp_path / "job.py"), QUICK)
    api.trigger(dag_id, RUN)
    left = on_yarn.await_deferred(dag_id, RUN)
    on_yarn.assert_waits(dag_id, RUN)
    api.mark(dag_id, RUN, TASK, "failed")
    assert _await_end(on_yarn, left["job_id"], left["application_id"]) == "KILLED"
    assert api.task(dag_id, RUN, TASK)["state"] == "failed"


@pytest.mark.may_rerun("Airflow's scheduler takes its time")
@pytest.mark.drill
def test_run_is_timed_out_while_deferred(on_yarn: AirflowOnYarn, tmp_path: Path) -> None:
    """Nothing is left running that nobody asked for."""
    api, dag_id = on_yarn.airflow.api, "timed_out"
    program = Numbered("/tests/airflow-timed-out").write_program(tmp_path / "job.py")
    on_yarn.add_job(dag_id, program, QUICK, dagrun_timeout="timedelta(seconds=60)")
    api.trigger(dag_id, RUN)
    left = on_yarn.await_deferred(dag_id, RUN)
    assert api.end_of_run(dag_id, RUN) == "failed"
    assert _await_end(on_yarn, left["job_id"], left["application_id"]) == "KILLED"
    assert api.task(dag_id, RUN, TASK)["state"] == "skipped"


@pytest.mark.drill
def test_cleared(on_yarn: AirflowOnYarn, tmp_path: Path) -> None:
    """While deferred: the next try follows the same job.  After its end: another job is run."""
    api, dag_id = on_yarn.airflow.api, "cleared"
    job = Numbered("/tests/airflow-cleared")
    on_yarn.add_job(dag_id, job.write_program(tmp_path / "job.py"), QUICK)
    api.trigger(dag_id, RUN)
    left = on_yarn.await_deferred(dag_id, RUN)
    on_yarn.assert_waits(dag_id, RUN)
    api.clear(dag_id, RUN, TASK)
    again = on_yarn.await_deferred(dag_id, RUN, tries=2)
    assert again["job_id"] == left["job_id"] and again["application_id"] == left["application_id"]
    await_commits(on_yarn.yarn, left["job_id"])
    _ends_well(on_yarn, dag_id, job, RUN)
    api.clear(dag_id, RUN, TASK)
    another = on_yarn.await_deferred(dag_id, RUN, tries=3)
    assert another["job_id"] != left["job_id"]
    on_yarn.assert_waits(dag_id, RUN)
    api.mark(dag_id, RUN, TASK, "failed")
    assert on_yarn.yarn.ended(another["application_id"])["finalStatus"] == "KILLED"
    assert len(on_yarn.applications()) == 2


@pytest.mark.drill
def test_two_runs_at_the_same_moment(on_yarn: AirflowOnYarn, tmp_path: Path) -> None:
    """They have one job key, so they follow one job."""
    api, dag_id = on_yarn.airflow.api, "two_runs"
    job = Numbered("/tests/airflow-two-runs")
    on_yarn.add_job(dag_id, job.write_program(tmp_path / "job.py"), QUICK, job_key="two-runs")
    runs = ("left", "right")
    on_yarn.airflow.api.pause(dag_id)
    for run_id in runs:
        api.trigger(dag_id, run_id)
    on_yarn.airflow.api.pause(dag_id, False)
    found = [on_yarn.await_deferred(dag_id, run_id) for run_id in runs]
    assert found[0]["job_id"] == found[1]["job_id"]
    assert len(on_yarn.yarn.live()) == 1
    await_commits(on_yarn.yarn, found[0]["job_id"])
    _ends_well(on_yarn, dag_id, job, *runs, application_id=found[0]["application_id"])


@pytest.mark.drill
def test_worker_that_waits_itself_is_lost(on_yarn: AirflowOnYarn, tmp_path: Path) -> None:
    """Where tasks are not deferred, the next try goes on following the job."""
    api, dag_id = on_yarn.airflow.api, "not_deferred"
    job = Numbered("/tests/airflow-not-deferred")
    on_yarn.add_job(dag_id, job.write_program(tmp_path / "job.py"), QUICK, deferrable=False)
    api.trigger(dag_id, RUN)
    on_yarn.await_application()
    wait_until(lambda: "job_id" in api.xcoms(dag_id, RUN, TASK), "the job")
    kill_tree(on_yarn.airflow.await_worker(dag_id, RUN, TASK))
    api.await_task(dag_id, RUN, TASK, "running", tries=2)
    # what the lost try had left is gone when the next one begins
    wait_until(lambda: "following it" in api.log(dag_id, RUN, TASK, 2), "the next try")
    job_id = wait_until(lambda: api.xcoms(dag_id, RUN, TASK).get("job_id"), "the job of the next try")
    await_commits(on_yarn.yarn, job_id)
    _ends_well(on_yarn, dag_id, job, RUN)


@pytest.mark.drill
def test_worker_is_told_to_end(on_yarn: AirflowOnYarn, tmp_path: Path) -> None:
    """It stops its job with a savepoint, from which the next try goes on."""
    api, dag_id = on_yarn.airflow.api, "told_to_end"
    job = Numbered("/tests/airflow-told-to-end")
    on_yarn.add_job(
        dag_id,
        job.write_program(tmp_path / "job.py"),
        QUICK,
        deferrable=False,
        on_kill="savepoint",
        savepoint_dir="hdfs:///tests/airflow-told-to-end-stopped",
    )
    api.trigger(dag_id, RUN)
    on_yarn.await_application()
    wait_until(lambda: "job_id" in api.xcoms(dag_id, RUN, TASK), "the job")
    first = api.xcoms(dag_id, RUN, TASK)
    await_commits(on_yarn.yarn, first["job_id"])
    # as where its container is wanted elsewhere
    on_yarn.airflow.await_worker(dag_id, RUN, TASK).terminate()
    api.await_task(dag_id, RUN, TASK, "running", tries=2)

    def next_job() -> str | None:
        job_id = api.xcoms(dag_id, RUN, TASK).get("job_id")
        return None if job_id == first["job_id"] else job_id

    second = wait_until(next_job, "the next job")
    assert on_yarn.yarn.ended(first["application_id"])["finalStatus"] == "SUCCEEDED"
    await_commits(on_yarn.yarn, second)
    assert len(on_yarn.applications()) == 2
    _ends_well(on_yarn, dag_id, job, RUN, application_id=on_yarn.applications()[-1])


@pytest.mark.drill
def test_job_finishes_while_no_triggerer_runs(on_yarn: AirflowOnYarn, tmp_path: Path) -> None:
    """When somebody looks again, the task's time is over, and its work is done: once."""
    api, dag_id = on_yarn.airflow.api, "no_triggerer"
    job = Numbered("/tests/airflow-no-triggerer")
    program = job.write_program(tmp_path / "job.py")
    on_yarn.add_job(dag_id, program, QUICK, execution_timeout=timedelta(seconds=120))
    api.trigger(dag_id, RUN)
    left = on_yarn.await_deferred(dag_id, RUN)
    await_commits(on_yarn.yarn, left["job_id"])
    on_yarn.airflow.kill("triggerer")
    try:
        _ends_well(on_yarn, dag_id, job, RUN)
    finally:
        on_yarn.airflow.start("triggerer")
    assert api.task(dag_id, RUN, TASK)["try_number"] == 1
    assert on_yarn.applications() == [left["application_id"]]


@pytest.mark.drill
def test_leaders_container_is_lost_while_deferred(
    on_yarn: AirflowOnYarn, masters: Masters, tmp_path: Path
) -> None:
    """The trigger finds the standby, which leads now, and the task hears of nothing but the job's end."""
    api, dag_id = on_yarn.airflow.api, "leader_lost"
    job = Numbered("/tests/airflow-leader")
    on_yarn.add_job(dag_id, job.write_program(tmp_path / "job.py"), *masters.options)
    api.trigger(dag_id, RUN)
    left = on_yarn.await_deferred(dag_id, RUN)
    await_commits(on_yarn.yarn, left["job_id"])
    first, second = masters.await_two()
    assert first == left["application_id"]
    (supervisor,) = masters.processes_of(first, MASTER)
    supervisor.kill()
    await_commits(on_yarn.yarn, left["job_id"])
    on_yarn.assert_waits(dag_id, RUN)
    _ends_well(on_yarn, dag_id, job, RUN, application_id=second)
    assert api.task(dag_id, RUN, TASK)["try_number"] == 1
