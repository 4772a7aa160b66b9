"""The tiny streaming job from which class-data archives learn.

Touches what most jobs touch: files in and out, windows with a watermark on RocksDB state, a
shuffle, a Python function by Arrow, ``foreachBatch``, Parquet; and what programs on elements run on:
keyed state in Python, clock ticks, results that are kept while sinks read them.  Runs one driver JVM and one
executor on this machine and waits for both to end, because that is when they write.
"""

from __future__ import annotations

import secrets
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from yarnflow.core.ids import DriverId, ExecutorId, JobId
from yarnflow.core.messages import ExecutorDescriptor
from yarnflow.errors import ResourceError
from yarnflow.spark.launch.class_data_sharing import Role
from yarnflow.spark.launch.executor_command import ExecutorSettings, executor_command
from yarnflow.spark.launch.java import JavaRuntime
from yarnflow.spark.launch.jvm import GatewayJvm, gateway_command
from yarnflow.spark.launch.session import DriverSession, SessionSettings, open_session
from yarnflow.spark.progress.collector import ProgressCollector
from yarnflow.spark.progress.listener import listen

_HEAP_MIB: Final = 640
#: writing an archive of 150 MB takes its time on a small machine
_END_TIMEOUT_S: Final = 120.0
_QUERY_TIMEOUT_S: Final = 90.0

Wrap = Callable[[list[str]], list[str]]


def train(java: JavaRuntime, driver_flags: list[str], flags: Mapping[Role, list[str]], wrap: Wrap) -> None:
    """Run the training job.

    Parameters
    ----------
    java : JavaRuntime
    driver_flags : list of str
        The flags drivers run with otherwise; an archive fits the collector it was made with best.
    flags : mapping
        More JVM options for each role.
    wrap : callable
        Ties a command's life to this process.
    """
    with tempfile.TemporaryDirectory(prefix="yarnflow-training-") as name:
        directory = Path(name)
        log_file = directory / "driver.log"
        command = gateway_command(java, _HEAP_MIB, [*driver_flags, *flags[Role.DRIVER]])
        jvm = GatewayJvm.launch(command, host="127.0.0.1", log_file=log_file, wrap=wrap)
        executor: subprocess.Popen[bytes] | None = None
        try:
            session = open_session(
                jvm.connect(), SessionSettings("training", "127.0.0.1", secrets.token_hex(16), parallelism=2)
            )
            executor = _start_executor(session, java, flags[Role.EXECUTOR], directory, wrap)
            listen(session.spark, ProgressCollector())
            _run_queries(session.spark, directory)
            _run_keyed_state(session.spark, directory)
            session.stop()
            executor.wait(_END_TIMEOUT_S)
        finally:
            if executor is not None and executor.poll() is None:
                executor.kill()
                executor.wait()
            jvm.stop(_END_TIMEOUT_S)


def _start_executor(
    session: DriverSession, java: JavaRuntime, flags: list[str], directory: Path, wrap: Wrap
) -> subprocess.Popen[bytes]:
    attachment = session.attachment()
    descriptor = ExecutorDescriptor(
        job_id=JobId("0" * 32),
        driver_id=DriverId("training"),
        executor_id=ExecutorId("0"),
        driver_url=attachment.driver_url,
        app_id=attachment.app_id,
        cores=2,
        java_options=attachment.java_options,
        environment=attachment.environment,
    )
    settings = ExecutorSettings(
        java, "127.0.0.1", _HEAP_MIB, class_data_sharing=tuple(flags), local_dirs=(str(directory),)
    )
    secret = session.spark.sparkContext.getConf().get("spark.authenticate.secret")
    command = executor_command(descriptor, settings, secret)
    with open(directory / "executor.log", "ab") as log:
        return subprocess.Popen(
            wrap(list(command.command)),
            env=command.environment,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _run_queries(spark: Any, directory: Path) -> None:
    from pyspark.sql import functions as F

    source, sink = directory / "in", directory / "out"
    source.mkdir()
    for hour in range(3):
        rows = [f"k{i % 5},2020-01-01 {hour:02d}:{i % 60:02d}:00,{i}" for i in range(200)]
        (source / f"{hour}.csv").write_text("\n".join(rows) + "\n")
    schema = "k string, ts timestamp, v int"
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).csv(str(source))

    def parse(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches

    def write(frame: Any, batch_id: int) -> None:
        frame.persist()
        frame.write.mode("append").parquet(str(sink))
        frame.limit(10).collect()
        frame.toArrow()
        frame.unpersist()

    windows = (
        stream.mapInArrow(parse, schema)
        .withWatermark("ts", "5 minutes")
        .groupBy("k", F.window("ts", "1 hour"))
        .agg(F.count("*").alias("n"), F.sum("v").alias("s"), F.collect_list(F.struct("ts", "v")).alias("all"))
        .select("k", F.col("window.start").alias("start"), "n", "s", F.size("all").alias("m"))
    )
    query = (
        windows.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    _await_end(query)
    spark.read.parquet(str(sink)).createOrReplaceTempView("out")
    spark.sql("SELECT k, sum(n) AS n FROM out GROUP BY k ORDER BY n DESC").toPandas()
    pairs = spark.createDataFrame([(1, "a")], "i int, s string")
    pairs.join(spark.range(10), F.col("i") == F.col("id")).collect()


def _run_keyed_state(spark: Any, directory: Path) -> None:
    """What :mod:`yarnflow.spark.elements` makes of a level with state, in small."""
    from pyspark.sql import Row
    from pyspark.sql import functions as F
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    schema = "place int, sequence bigint, payload binary"

    class Kept(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self._head = handle.getValueState("head", "first bigint, root binary")
            self._log = handle.getMapState("log", "number bigint", "body binary")

        def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            for row in rows:
                if self._head.get() is None or self._log.getValue((row[1],)) is None:
                    self._head.update((row[1], row[2]))
                    self._log.updateValue((row[1],), (row[2],))
                yield Row(place=row[0], sequence=row[1], payload=row[2])

        def close(self) -> None:
            pass

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches

    def write(frame: Any, batch_id: int) -> None:
        frame.persist()
        frame.foreachPartition(lambda rows: None)
        for place in range(2):
            frame.where(F.col("place") == place).mapInArrow(read, schema).toArrow()
        frame.unpersist()

    stored = directory / "numbers"
    spark.range(100).coalesce(1).write.parquet(str(stored))
    numbers = spark.readStream.schema("id bigint").parquet(str(stored))
    ticks = spark.readStream.format("rate").load().select(F.col("value").alias("id"))
    rows = numbers.unionByName(ticks).select(
        F.explode(F.array(F.lit(0), F.lit(1))).alias("place"),
        F.col("id").alias("sequence"),
        F.col("id").cast("string").cast("binary").alias("payload"),
    )
    stateful = (
        rows.mapInArrow(read, schema)
        .repartitionById(2, F.col("place"))
        .groupBy("place")
        .transformWithState(Kept(), schema, "append", "none")
    )
    query = (
        stateful.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(directory / "keyed"))
        .trigger(availableNow=True)
        .start()
    )
    _await_end(query)


def _await_end(query: Any) -> None:
    if not query.awaitTermination(_QUERY_TIMEOUT_S):
        query.stop()
        raise ResourceError(f"the training job did not end within {_QUERY_TIMEOUT_S:.0f} s")
