"""Slots of one TaskManager that are several jobs', on a cluster that ends containers for their memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.conftest import wait_until
from integration.yarn.jobs import Yarn, application_id

#: waits in a task of Python until the other job's task runs, and then for several looks of the NodeManager
TOGETHER = """
import sys
import time
from pathlib import Path
from pyspark.sql import SparkSession

_, here, own, other = sys.argv
context = SparkSession.builder.getOrCreate().sparkContext

def meet(_):
    Path(here, own).touch()
    while not Path(here, other).exists():
        time.sleep(0.05)
    time.sleep(8)
    return 1

assert context.parallelize([0], 1).map(meet).sum() == 1
# an executor's memory is told once its blocks are known, which is certain after a task
executors = context._jsc.sc().statusStore().executorList(True)
found = [executors.apply(i) for i in range(executors.size())]
sizes = [e.memoryMetrics().get().totalOffHeapStorageMemory() for e in found if e.id() != "driver"]
Path(here, own + ".off-heap").write_text(",".join(str(size >> 20) for size in sizes))
"""


@pytest.mark.may_rerun("YARN starts and ends containers")
def test_two_jobs_on_one_task_manager_are_within_its_container(yarn: Yarn, tmp_path: Path) -> None:
    """Their executors take all the heap they may at once."""
    # jobs of one name would be one job
    programs = [tmp_path / "one.py", tmp_path / "two.py"]
    for program in programs:
        program.write_text(TOGETHER)
    started = yarn.run(
        *("session", "start", "-d", "-Dtaskmanager.numberOfTaskSlots=2", "-Dyarn.appmaster.drivers=2"),
        *("-Dtaskmanager.memory.process.size=4000m", "-Dtaskmanager.memory.task.off-heap.size=200m"),
        "-Ddriver.memory.process.size=1200m",
    )
    assert started.process.returncode == 0
    session = application_id(started)
    greedy = "-Dspark.executor.extraJavaOptions=-XX:+AlwaysPreTouch -XX:InitialRAMPercentage=100"
    submit = ("submit", "-t", "yarn-session", f"-Dyarn.application.id={session}", greedy)
    names = (("one", "two"), ("two", "one"))
    jobs = [
        yarn.start(*submit, program, tmp_path, *both) for program, both in zip(programs, names, strict=True)
    ]
    wait_until(lambda: all((tmp_path / name).is_file() for name in ("one", "two")), "both jobs to run")
    containers = yarn.containers(session)
    for job in jobs:
        job.wait()
        assert job.process.returncode == 0, job.stderr
    assert len(containers) == 2 and yarn.containers(session) == containers, "master and one TaskManager"
    assert [(tmp_path / f"{name}.off-heap").read_text() for name in ("one", "two")] == ["100", "100"]
    assert yarn.run("session", "stop", session).process.returncode == 0
