"""Checkpoints of local files are written by one of Spark's file managers, and gone on from by either."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from integration.spark.savepoint_support import (
    BACKENDS,
    Input,
    Job,
    counting,
    expected_totals,
    totals,
    use_backend,
    wait_until,
)
from integration.spark.translate_support import Graph, schema
from yarnflow.errors import StateDamaged
from yarnflow.graph.connectors.sources import RateSource
from yarnflow.spark.checkpoints.file_manager import FILE_MANAGER, LOCAL_FILE_MANAGER
from yarnflow.spark.run.progress import ProgressCollector
from yarnflow.spark.script.program import ScriptProgram

BY_SYSTEM, BY_CONTEXT = "FileSystemBasedCheckpointFileManager", "FileContextBasedCheckpointFileManager"


@pytest.fixture(autouse=True)
def _session_as_before(spark: SparkSession) -> Iterator[None]:
    yield
    for query in spark.streams.active:
        query.stop()
    spark.conf.unset(FILE_MANAGER)


def manager_of(query: Any) -> str:
    """The class that a query writes its commits by."""
    return str(query._jsq.streamingQuery().commitLog().fileManager().getClass().getSimpleName())


def _has_committed(job: Job, batch_id: int) -> bool:
    return job.program._runs[0].committed() == batch_id


@pytest.mark.parametrize("backend", BACKENDS)
def test_state_goes_on_from_one_manager_to_the_other_and_back(
    spark: SparkSession, tmp_path: Path, backend: str
) -> None:
    use_backend(spark, backend)
    source, out, checkpoint = Input(tmp_path / "in"), tmp_path / "out", tmp_path / "checkpoint"
    users = LOCAL_FILE_MANAGER.replace(BY_SYSTEM, BY_CONTEXT)
    for set_by_user, manager in (("", BY_SYSTEM), (users, BY_CONTEXT), ("", BY_SYSTEM)):
        if set_by_user:
            spark.conf.set(FILE_MANAGER, set_by_user)
        job = Job(spark, counting(source, out), tmp_path)
        assert manager_of(job.program._runs[0]._query) == manager
        assert spark.conf.get(FILE_MANAGER, None) == (set_by_user or None), "the next query chooses anew"
        # one file is one batch; to be stopped in a commit would leave a file of either manager
        last = source.written // 10 - 1
        job.wait_until(partial(_has_committed, job, last), "all of the input")
        job.cancel()
        assert totals(out) == expected_totals(source.written)
        spark.conf.unset(FILE_MANAGER)
        source.add(3)
    files = [path for path in checkpoint.rglob("*") if path.is_file() and path.suffix != ".crc"]
    beside = {f".{path.name}.crc" for path in files if path.parent.name in ("offsets", "commits")}
    assert beside, "there are commits"
    assert beside <= {path.name for path in checkpoint.rglob("*.crc")}, "all have their checksums"
    assert not list(checkpoint.rglob("*.tmp")), "every file has got its name"


def test_a_checkpoint_that_is_deleted_while_its_query_runs_ends_the_job(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark's manager would make the directory again, and the query go on without its past."""
    graph = Graph()
    # one of files keeps a list there, and would miss it
    graph.files(tmp_path / "out", graph.add(RateSource(10), schema("timestamp timestamp, value bigint")))
    job = Job(spark, graph, tmp_path)
    run = job.program._runs[0]
    job.wait_until(lambda: run.committed() >= 0, "the first batch")
    # not while Spark writes into it: the next batch is planned and waits
    last = job.hold(run.name)
    offsets = Path(run.directory, "offsets", str(last + 1))
    job.wait_until(offsets.exists, "the next batch")
    Path(run.directory).rename(tmp_path / "elsewhere")
    run.gate.release()
    with pytest.raises(StateDamaged, match="was deleted while its query ran; put it back from a copy"):
        job.ended()


SCRIPT = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
_, source, local, other = sys.argv
numbers = spark.readStream.schema("n bigint, k bigint, at timestamp").parquet(source)
def start(name, checkpoint, out):
    (numbers.writeStream.format("parquet").queryName(name)
            .option("checkpointLocation", f"{checkpoint}/{name}").start(f"{out}/out-{name}"))
start("local", local, local)
start("other", other, other)
start("out", local, other)
start("again", local, local)
"""


def test_each_query_of_a_script_has_what_suits_its_file_systems(spark: SparkSession, tmp_path: Path) -> None:
    source = Input(tmp_path / "in")
    # as HDFS, it is no local file system by its name
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.viewfs.mounttable.files.link./d", tmp_path.as_uri())
    program = ScriptProgram(
        spark,
        {"job.py": SCRIPT.encode()},
        ["job.py", str(source.directory), str(tmp_path), "viewfs://files/d"],
        tmp_path / "job",
        str(tmp_path / "job/checkpoint"),
        ProgressCollector(),
    )
    found: dict[str, str] = {}

    def all_commit() -> bool:
        found.update({query.name: manager_of(query) for query in spark.streams.active if query.lastProgress})
        return len(found) == 4

    _run(program, all_commit)
    assert found == {"local": BY_SYSTEM, "other": BY_CONTEXT, "out": BY_CONTEXT, "again": BY_SYSTEM}
    assert spark.conf.get(FILE_MANAGER, None) is None


def _run(program: ScriptProgram, until: Callable[[], bool]) -> None:
    """Run its main here, and stop it once it is time."""
    def stop() -> None:
        try:
            wait_until(until, "all queries have made a batch")
        finally:
            program.stop()

    program.prepare()
    beside = threading.Thread(target=stop)
    beside.start()
    program.await_end()
    beside.join()
