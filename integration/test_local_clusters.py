"""The job of a local cluster, from another command: found without an option, and stopped with its state."""

from __future__ import annotations

import json
import re
from pathlib import Path

from integration.conftest import Commands, Started, wait_until
from yarnflow import errors

LOCAL = ("-t", "local")
ENDLESS = """
from yarnflow.api import *
env = StreamExecutionEnvironment.get_execution_environment()
rows = env.from_source(RateSource(rows_per_second=20))
rows.key_by("value % 3 AS part").count().print()
env.execute("endless")
"""


def _running(submit: Started) -> str:
    """Id of the job once it runs."""
    wait_until(lambda: "to RUNNING" in submit.stderr or submit.process.poll() is not None, "RUNNING")
    found = re.search(r"JobID ([0-9a-f]{32})", submit.stderr)
    assert found and submit.process.poll() is None, submit.stderr
    return found[1]


def test_a_job_is_stopped_with_a_savepoint_by_another_command(yarnflow: Commands, tmp_path: Path) -> None:
    """The cluster is found with the target's option and without it."""
    program = tmp_path / "endless.py"
    program.write_text(ENDLESS)
    # the clusters of other tests are the same user's
    here = f"-Dio.tmp.dirs={tmp_path}"
    # a driver that starts batches is busy
    submit = yarnflow.start("submit", here, "-Drpc.ask.timeout=60 s", program)
    job_id = _running(submit)
    assert submit.stderr.count("its state goes with this command") == 1, submit.stderr

    for target in ((), LOCAL):
        listed = yarnflow.run("list", here, *target)
        assert listed.process.returncode == 0, listed.stderr
        assert re.search(rf"{job_id}.*endless", listed.stdout)
    levels = yarnflow.run("log-level", "org.apache.spark.sql.execution.streaming", "INFO", here, "--json")
    assert levels.process.returncode == 0, levels.stderr
    processes = json.loads(levels.stdout)["processes"]
    assert not any(process["error"] for process in processes)
    assert any(job_id in process["process"] for process in processes)
    taken = yarnflow.run("savepoint", job_id, tmp_path / "kept", here)
    assert taken.process.returncode == 0, taken.stderr
    assert Path(taken.stdout.strip().removeprefix("file://")).is_dir()

    stop = yarnflow.run("stop", job_id, "-p", tmp_path / "kept", here, *LOCAL)
    assert stop.process.returncode == 0, stop.stderr
    assert stop.stderr.splitlines()[-1].endswith("to FINISHED."), stop.stderr
    savepoint = stop.stdout.strip()
    assert Path(savepoint.removeprefix("file://")).is_dir()
    assert submit.wait() == 0, submit.stderr

    gone = yarnflow.run("cancel", job_id, here, *LOCAL)
    assert gone.process.returncode == errors.JobNotFound.exit_code
    assert "no local cluster of this user runs" in gone.stderr

    again = yarnflow.start("submit", here, "-s", savepoint, program)
    second = _running(again)
    canceled = yarnflow.run("cancel", second, here)
    assert canceled.process.returncode == 0, canceled.stderr
    # it was in the directory of the cluster
    assert "is retained" not in canceled.stderr + canceled.stdout
    assert again.wait() == errors.JobCanceled.exit_code
