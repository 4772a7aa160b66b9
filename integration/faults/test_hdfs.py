"""HDFS that takes no changes for a while, and one that is full, while a job writes files to it."""

from __future__ import annotations

import io
import uuid
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from integration.conftest import Commands, wait_until
from integration.hadoop import HadoopCluster
from tests.patience import PATIENCE
from yarnflow.config.hadoop.conf import HadoopConf

ROWS = 2000
PROGRAM = """
import sys
from yarnflow.api import FileSink, RateSource, StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
rows = env.from_source(RateSource(rows_per_second=50, count=int(sys.argv[2])))
rows.select("value").sink_to(FileSink.for_path(sys.argv[1]).format("parquet").build())
env.execute("to HDFS")
"""


def numbers(hadoop: HadoopCluster, directory: str) -> Counter[int]:
    found: Counter[int] = Counter()
    names = hadoop.hdfs.list(directory) if hadoop.hdfs.exists(directory) else []
    for name in names:
        if name.startswith("part-"):
            content = io.BytesIO(hadoop.hdfs.read(f"{directory}/{name}"))
            found.update(pq.read_table(content, columns=["value"])["value"].to_pylist())
    return found


@pytest.mark.parametrize("fault", [pytest.param("safe mode", marks=pytest.mark.drill), "quota"])
def test_nothing_is_lost_while_hdfs_takes_no_files(
    hadoop: HadoopCluster, yarnflow: Commands, tmp_path: Path, fault: str
) -> None:
    directory = f"/faults-{uuid.uuid4().hex[:8]}"
    hadoop.hdfs.make_folder(directory)

    def set_fault(on: bool) -> None:
        if fault == "quota":
            hadoop.hdfs.set_space_quota(directory, 1 if on else -1)
        else:
            hadoop.safe_mode(on)

    program = tmp_path / "to_hdfs.py"
    program.write_text(PROGRAM)
    started = yarnflow.start(
        "submit", "-p", "2", "-Dexecution.micro-batch.interval=1 s", program,
        f"{HadoopConf.load(hadoop.env()).default_fs}{directory}/out", str(ROWS), environment=hadoop.env(),
    )  # fmt: skip

    def some() -> int:
        assert started.process.poll() is None, "the job ended before the fault"
        return sum(numbers(hadoop, f"{directory}/out").values())

    wait_until(some, "the first files")
    set_fault(True)
    try:
        wait_until(lambda: "to RESTARTING" in started.stderr, "the job to notice")
        assert started.process.poll() is None
    finally:
        set_fault(False)
    assert sum(numbers(hadoop, f"{directory}/out").values()) < ROWS, "the job had ended before the fault"
    assert started.wait(PATIENCE.job_s) == 0
    told = {"safe mode": "safe mode", "quota": "no space is left"}[fault]
    assert any(told in line for line in started.stderr.splitlines()), "what was wrong was not told"
    assert numbers(hadoop, f"{directory}/out") == Counter(range(ROWS))
