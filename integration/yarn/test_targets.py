"""The three targets on YARN: the results of the local run, the truth in YARN, and nothing left behind."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from integration.conftest import wait_until
from integration.yarn.jobs import FLIGHTS, SCRIPT, TWO_TASK_MANAGERS, Yarn, application_id
from integration.yarn.web import check_reading, origin_of, proxied, with_token
from yarnflow.config.hadoop.conf import HadoopConf
from yarnflow.core.uris import split_uri
from yarnflow.fs.file_systems import open_file_system
from yarnflow.process.clock import SystemClock
from yarnflow.rest.history.fetcher import ArchiveFetcher, Retention
from yarnflow.rest.history.store import ArchiveStore


# elsewhere than in drills, each target runs one of the two programs
@pytest.mark.parametrize(
    "target", ["yarn-per-job", pytest.param("yarn-application", marks=pytest.mark.drill)]
)
def test_flight_delays(yarn: Yarn, flights: str, tmp_path: Path, target: str) -> None:
    output = f"/tests/windows-{target}"
    done = yarn.run(
        "submit", "-t", target, *TWO_TASK_MANAGERS, FLIGHTS, "--input", flights, "--output", output
    )
    assert done.process.returncode == 0
    yarn.assert_windows(output, tmp_path)
    report = yarn.ended(application_id(done))
    assert (report["state"], report["finalStatus"]) == ("FINISHED", "SUCCEEDED")
    assert not yarn.retained_state(), "a job that is FINISHED needs no state"
    assert "yarnflow" in report["applicationTags"].split(",")


@pytest.mark.gate
@pytest.mark.parametrize(
    "target", [pytest.param("yarn-per-job", marks=pytest.mark.drill), "yarn-application"]
)
def test_plain_pyspark_script(yarn: Yarn, texts: str, target: str) -> None:
    output = f"/tests/words-{target}"
    done = yarn.run("submit", "-t", target, SCRIPT, "--input", texts, "--output", output)
    assert done.process.returncode == 0
    yarn.assert_words(done, output)
    assert yarn.ended(application_id(done))["finalStatus"] == "SUCCEEDED"


@pytest.mark.gate
def test_session_runs_many_jobs(yarn: Yarn, flights: str, texts: str, tmp_path: Path) -> None:
    """Two jobs in one session, one of each kind; idle TaskManagers are given back in between."""
    options = ("-Dresourcemanager.taskmanager-timeout=3 s", "-Dtaskmanager.numberOfTaskSlots=1")
    started = yarn.run("session", "start", "-d", *options)
    assert started.process.returncode == 0
    session = application_id(started)
    assert session in yarn.run("session", "list").stdout
    target = ("-t", "yarn-session", f"-Dyarn.application.id={session}")
    arguments = (FLIGHTS, "--input", flights, "--output", "/tests/s-windows")
    first = yarn.run("submit", *target, "-p", "2", *arguments)
    assert first.process.returncode == 0
    yarn.assert_windows("/tests/s-windows", tmp_path)
    wait_until(lambda: len(yarn.containers(session)) == 1, "idle TaskManagers to be given back")
    second = yarn.run("submit", *target, SCRIPT, "--input", texts, "--output", "/tests/s-words")
    assert second.process.returncode == 0
    yarn.assert_words(second, "/tests/s-words")
    listed = yarn.run("list", "--all", *target)
    assert listed.stdout.count("FINISHED") == 2
    stopped = yarn.run("session", "stop", session)
    assert stopped.process.returncode == 0
    assert yarn.ended(session)["finalStatus"] == "SUCCEEDED"


@pytest.mark.may_rerun("YARN starts and ends containers")
def test_failing_user_code_is_what_yarn_shows(yarn: Yarn, tmp_path: Path) -> None:
    program = tmp_path / "failing.py"
    program.write_text(
        "from yarnflow import api\n"
        "def divide(value: int) -> int:\n"
        "    return 1 // (value - 2)\n"
        "env = api.StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_collection([1, 2, 3]).map(divide).print()\n"
        "env.execute('failing')\n"
    )
    archives = "hdfs:///tests/archives"
    options = ("-Drestart-strategy.type=none", f"-Djobmanager.archive.fs.dir={archives}")
    done = yarn.run("submit", "-t", "yarn-per-job", *options, program)
    assert done.process.returncode == 45
    assert "ZeroDivisionError" in done.stderr and "line 3" in done.stderr
    report = yarn.ended(application_id(done))
    assert (report["state"], report["finalStatus"]) == ("FINISHED", "FAILED")
    assert "ZeroDivisionError" in report["diagnostics"]
    assert_archived(yarn, archives, tmp_path)


def assert_archived(yarn: Yarn, archives: str, copies: Path) -> None:
    """The application is gone; its one job is in the archives, as the history server reads them."""
    conf = HadoopConf.load(yarn.hadoop.env())
    files = open_file_system(conf, conf.user({}))
    store = ArchiveStore(copies / "copies")
    ArchiveFetcher(
        [archives], lambda uri: (files, split_uri(uri)[2]), store, Retention(), SystemClock()
    ).refresh()
    ((job_id, state),) = store.states()
    assert state == "FAILED"
    assert b"ZeroDivisionError" in (store.answer(f"/jobs/{job_id}/exceptions") or b"")
    logs = json.loads(store.answer(f"/jobs/{job_id}/logs") or b"{}")
    assert logs["jobmanager"]["container"].startswith("container_")
    assert len(store.summaries("applications")) == 1
    store.close()


@pytest.mark.may_rerun("YARN starts and ends containers")
@pytest.mark.parametrize(
    "verb, status",
    [("yarn-cancel", "KILLED"), pytest.param("yarn-stop", "SUCCEEDED", marks=pytest.mark.drill)],
)
def test_ended_through_yarns_proxy(yarn: Yarn, endless: Path, verb: str, status: str) -> None:
    """Read through the proxy, refused, and ended as a page of the dashboard does it there."""
    savepoints = "-Dexecution.checkpointing.savepoint-dir=hdfs:///tests/by-proxy"
    job = yarn.run("submit", "-t", "yarn-per-job", "-d", savepoints, endless)
    assert job.process.returncode == 0
    application = application_id(job)
    (job_id,) = set(re.findall(r"\b[0-9a-f]{32}\b", job.stdout + job.stderr))
    where = f"-Dyarn.application.id={application}"
    assert job_id in yarn.run("list", where).stdout
    yarn.await_running(application, job_id)
    # before its query runs there is nothing worth keeping
    wait_until(lambda: yarn.run("checkpoint", where, job_id).process.returncode == 0, "a checkpoint")
    check_reading(yarn, application, job_id)
    proxy, token = proxied(yarn, application), with_token(yarn, where).token
    ended = proxy.ask("PUT", f"/jobs/{job_id}/{verb}", {"token": token}, origin_of(proxy))
    assert ended.status == 202, ended.body
    assert yarn.ended(application)["finalStatus"] == status
    if verb == "yarn-cancel":
        assert any(job_id in path for path in yarn.retained_state()), "the state went with the application"
    else:
        assert yarn.below("/tests/by-proxy"), "no savepoint"


def test_one_key_one_job(yarn: Yarn, endless: Path) -> None:
    """Two submits at the same moment give one job; fail and replace do what they say.

    What was uploaded for one application is not for the next.
    """
    submit = ("submit", "-t", "yarn-per-job", "-d", "--job-key", "nightly")
    both = [yarn.start(*submit, endless) for _ in range(2)]
    assert [started.wait() for started in both] == [0, 0]
    texts = [started.stdout + started.stderr for started in both]
    (job_id,) = {name for text in texts for name in re.findall(r"\b[0-9a-f]{32}\b", text)}
    assert sum(f"attached to the live job with JobID {job_id}" in text for text in texts) == 1
    (live,) = yarn.live()
    uploaded = _cached(yarn)
    assert uploaded
    refused = yarn.run(*submit, "--on-existing", "fail", endless)
    assert refused.process.returncode == 42
    replaced = yarn.run(*submit, "--on-existing", "replace", endless)
    assert replaced.process.returncode == 0
    assert yarn.ended(live)["finalStatus"] == "KILLED"
    (now,) = yarn.live()
    assert now == application_id(replaced) != live
    yarn.hadoop.kill_application(now)
    assert _cached(yarn) == uploaded


def _cached(yarn: Yarn) -> set[tuple[str, str]]:
    """Files of the user that applications share, by folder."""
    cache = f"{yarn.home}/.yarnflow/cache"
    return {(folder, name) for folder, _, names in yarn.hdfs.walk(cache) for name in names}


@pytest.mark.may_rerun("YARN starts and ends containers")
@pytest.mark.drill
def test_application_killed_through_yarn(yarn: Yarn, endless: Path) -> None:
    """The fixture fails the test when a process or a directory is left."""
    started = yarn.start("submit", "-t", "yarn-per-job", endless)
    application = application_id(started)
    wait_until(lambda: "to RUNNING" in started.stderr, "the job to run")
    yarn.hadoop.kill_application(application)
    assert started.wait() not in (0, 1)
    (line,) = [line for line in started.stderr.splitlines() if line.startswith("error:")]
    assert "killed" in line.lower()
