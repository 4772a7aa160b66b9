"""Keyed state in both backends on a real Spark, while Python workers are killed."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from integration.conftest import wait_until
from integration.spark.shared_jvm import shared_session
from integration.spark.test_elements import NUMBERED, counts, environment, expected_counts, graph_of, write
from yarnflow.api import FileSink, FileSource, StreamExecutionEnvironment
from yarnflow.api.common import Types
from yarnflow.api.datastream.functions import KeyedProcessFunction, RuntimeContext
from yarnflow.api.datastream.state import ListStateDescriptor, ValueStateDescriptor
from yarnflow.config.configuration import Configuration
from yarnflow.core.resources.memory import TaskManagerMemory
from yarnflow.errors import StateTooLarge
from yarnflow.spark.run.graph_program import GraphProgram

#: of each attempt
FILES = 2


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session that tries tasks again, as executors do."""
    with shared_session("local[2,4]") as session:
        yield session


class Killed(KeyedProcessFunction):
    """Numbers the elements of a key, in two ways; its worker is killed once in the middle of a group.

    A timer far ahead for every element stays where it is.
    """

    def __init__(self, killed: str) -> None:
        self.killed = killed

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.seen = runtime_context.get_list_state(ListStateDescriptor("seen", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.seen.add(value[1])
        ctx.timer_service().register_event_time_timer(10**12 + count)
        if value[0] == 2 and count % 50 == 40 and not Path(self.killed).exists():
            Path(self.killed).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        assert len(list(self.seen.get())) == count
        yield value[0], count


def numbering(directory: Path, out: Path, killed: Path) -> StreamExecutionEnvironment:
    env = environment()
    source = FileSource(directory, "csv", schema="k BIGINT, n BIGINT", bounded=False, max_files_per_trigger=1)
    keyed = env.from_source(source).key_by(lambda row: row[0])
    keyed.process(Killed(str(killed)), output_type=NUMBERED).uid("numbered").sink_to(
        FileSink(str(out), "parquet")
    )
    return env


def test_sums_are_exact_whatever_worker_dies_and_in_whatever_backend(
    spark: SparkSession, tmp_path: Path
) -> None:
    directory, out = tmp_path / "in", tmp_path / "out"
    directory.mkdir()
    for attempt, backend in enumerate(("hashmap", "rocksdb", "hashmap")):
        files = FILES * (attempt + 1)
        for number in range(files - FILES, files):
            write(directory, number)
        killed = tmp_path / f"killed-{attempt}"
        program = GraphProgram(
            spark,
            graph_of(numbering(directory, out, killed)),
            Configuration.from_dict({"state.backend.type": backend}, "test"),
            str(tmp_path / "checkpoint"),
        )
        run_until_written(program, out, files * 100)
        assert killed.exists()
        assert counts(out) == expected_counts(files)


def run_until_written(program: GraphProgram, out: Path, rows: int) -> None:
    failures: list[Exception] = []

    def end() -> None:
        try:
            program.await_end()
        except Exception as error:
            failures.append(error)

    program.prepare()
    program.start()
    thread = threading.Thread(target=end, daemon=True)
    thread.start()
    wait_until(lambda: failures or len(counts(out)) >= rows, f"{rows} rows")
    program.stop()
    thread.join()
    assert not failures


def test_state_that_does_not_fit_ends_the_job_with_its_operator(spark: SparkSession, tmp_path: Path) -> None:
    directory = tmp_path / "in"
    directory.mkdir()
    # workers look once a second, and the smaller one of two is not to blame: one batch may not be enough
    for number in range(100):
        write(directory, number)
    killed = tmp_path / "killed"
    killed.touch()
    program = GraphProgram(
        spark,
        graph_of(numbering(directory, tmp_path / "out", killed)),
        Configuration.empty(),
        str(tmp_path / "checkpoint"),
        memory=TaskManagerMemory(2, 0, 0, 0, 1, 0, 1),
    )
    program.prepare()
    program.start()
    with pytest.raises(StateTooLarge) as error:
        program.await_end()
    assert re.fullmatch(
        r"operator '.*' \(level 1\) has too much state for its slot's memory, \d+ entries in this worker "
        r"\(\d+ MiB in checkpoints\): its Python worker uses \d+ MiB, all Python workers \d+ of 1 MiB, "
        r"the TaskManager \d+ of 2 MiB \(taskmanager.memory.process.size\); set state.backend.type to .*",
        error.value.message,
    )
