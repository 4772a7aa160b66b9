"""Paths of HDFS without the name of its NameNode, wherever a user may write one.

On YARN the default file system is HDFS; elsewhere it is the machine's own, and such a path is of the HDFS in
Hadoop's configuration all the same.
"""

from __future__ import annotations

import io
import signal
from pathlib import Path

import pytest

from integration.conftest import wait_until
from integration.yarn.jobs import Yarn, application_id, job_id
from integration.yarn.web import with_token

#: sets for itself where its table and the state of its query are
SCRIPT = """
import sys
from pyspark.sql import SparkSession

place = sys.argv[1]
builder = SparkSession.builder.appName("numbers").config("spark.sql.warehouse.dir", place + "/warehouse")
spark = builder.getOrCreate()
spark.range(5).write.mode("overwrite").saveAsTable("numbers")
assert spark.table("numbers").count() == 5
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).load()
counts = rows.groupBy("value").count().writeStream.outputMode("update").format("noop")
counts.option("checkpointLocation", place + "/state").trigger(availableNow=True).start().awaitTermination()
"""
#: counts lines
PROGRAM = """
import sys
from pyflink.common import Duration, Encoder, Types, WatermarkStrategy
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
from pyflink.datastream.state import ValueStateDescriptor

class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.lines = runtime_context.get_state(ValueStateDescriptor("lines", Types.LONG()))

    def process_element(self, line, ctx):
        self.lines.update((self.lines.value() or 0) + 1)
        yield f"{line},{self.lines.value()}"

env = StreamExecutionEnvironment.get_execution_environment()
files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), sys.argv[1] + "/in")
files = files.monitor_continuously(Duration.of_seconds(1)).build()
lines = env.from_source(files, WatermarkStrategy.no_watermarks(), "lines").uid("lines")
keyed = lines.key_by(lambda line: line, key_type=Types.STRING())
sink = FileSink.for_row_format(sys.argv[1] + "/out", Encoder.simple_string_encoder()).build()
keyed.process(Count(), Types.STRING()).uid("count").sink_to(sink).uid("out")
env.execute("lines")
"""


@pytest.mark.parametrize("target", ["yarn-application", "local"])
def test_a_script_keeps_table_and_state_where_it_says(yarn: Yarn, tmp_path: Path, target: str) -> None:
    import pyarrow.parquet as pq

    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    place = f"/tests/script-{target}"
    yarn.hdfs.makedirs(f"{place}/log")
    log = ("-Dspark.eventLog.enabled=true", f"-Dspark.eventLog.dir=hdfs://{place}/log")
    done = yarn.run("submit", "-t", target, "-p", "1", *log, script, f"hdfs://{place}")
    assert done.process.returncode == 0, done.stderr
    assert yarn.below(f"{place}/log")
    table = f"{place}/warehouse/numbers"
    parts = [name for name in yarn.below(table) if name.startswith("part-")]
    assert parts, yarn.below(table)
    numbers = []
    for name in parts:
        with yarn.hdfs.read(f"{table}/{name}") as reader:
            numbers += pq.read_table(io.BytesIO(reader.read()))["id"].to_pylist()
    assert sorted(numbers) == list(range(5))
    assert {"commits", "offsets", "state"} <= set(yarn.below(f"{place}/state"))


def test_a_job_goes_on_from_a_savepoint_by_such_paths(yarn: Yarn, tmp_path: Path) -> None:
    """On YARN, then on this machine; the savepoint is made by REST, shown and deleted by commands."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    place = "/tests/lines"
    checkpoints = f"-Dexecution.checkpointing.dir=hdfs://{place}/checkpoints"
    yarn.hadoop.hdfs.put(f"{place}/in/1.txt", b"a\nb\na\n")
    arguments = ("-p", "1", checkpoints, program, f"hdfs://{place}")
    first = yarn.run("submit", "-t", "yarn-per-job", "-d", *arguments)
    assert first.process.returncode == 0, first.stderr
    application, job = application_id(first), job_id(first)
    where = f"-Dyarn.application.id={application}"
    wait_until(lambda: "a,2" in _lines(yarn, f"{place}/out"), "the first lines")
    assert yarn.run("checkpoint", where, job).process.returncode == 0
    assert job in yarn.below(f"{place}/checkpoints")
    rest = with_token(yarn, where)
    stop = rest.post(f"/jobs/{job}/stop", {"targetDirectory": f"hdfs://{place}/savepoints", "drain": False})
    rest.completed(f"/jobs/{job}/savepoints/{stop['request-id']}")
    assert yarn.ended(application)["finalStatus"] == "SUCCEEDED"
    (name,) = yarn.below(f"{place}/savepoints")
    savepoint = f"hdfs://{place}/savepoints/{name}"
    shown = yarn.run("savepoint", "inspect", savepoint)
    assert shown.process.returncode == 0 and job in shown.stdout, shown.stderr

    yarn.hadoop.hdfs.put(f"{place}/in/2.txt", b"a\nc\n")
    second = yarn.start("submit", "-t", "local", "-s", savepoint, *arguments)

    def counted() -> bool:
        assert second.process.poll() is None, second.stderr
        return {"a,3", "c,1"} <= set(_lines(yarn, f"{place}/out"))

    wait_until(counted, "the lines behind the savepoint")
    second.process.send_signal(signal.SIGINT)
    second.wait()
    assert sorted(_lines(yarn, f"{place}/out")) == ["a,1", "a,2", "a,3", "b,1", "c,1"]
    disposed = yarn.run("savepoint", "dispose", "-y", savepoint)
    assert disposed.process.returncode == 0, disposed.stderr
    assert not yarn.below(f"{place}/savepoints")


def _lines(yarn: Yarn, directory: str) -> list[str]:
    found: list[str] = []
    for name in yarn.below(directory):
        if name.startswith("part-"):
            with yarn.hdfs.read(f"{directory}/{name}") as reader:
                found += reader.read().decode().splitlines()
    return found
