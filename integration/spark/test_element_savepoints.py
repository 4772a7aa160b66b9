"""Savepoints of programs on elements: what is in them, and what may be done with them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from integration.conftest import wait_until
from integration.spark.savepoint_support import STOP, Job
from integration.spark.test_elements import (
    NUMBERED,
    Kept,
    counts,
    environment,
    expected_counts,
    write,
)
from yarnflow.api import FileSink, FileSource, StreamExecutionEnvironment
from yarnflow.api.common import Types
from yarnflow.api.datastream.functions import KeyedProcessFunction, RuntimeContext
from yarnflow.api.datastream.state import ValueStateDescriptor
from yarnflow.core.checkpoint.manifest import METADATA_FILE
from yarnflow.core.checkpoint.messages import RestoreSettings
from yarnflow.core.ids import JobId
from yarnflow.errors import StateNotTrusted
from yarnflow.graph.state_shape import shape_of
from yarnflow.spark.checkpoints.job import JobIdentity
from yarnflow.spark.checkpoints.restore import restore
from yarnflow.spark.state.element_state import read_elements

OWN_KEY, OTHER_KEY = b"own", b"other"


@dataclass(frozen=True)
class Count:
    n: int


class CountsObjects(KeyedProcessFunction):
    """Counts the elements of a key in a state of objects."""

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("count", Types.PICKLED_BYTE_ARRAY())
        self.count = runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = Count((self.count.value() or Count(0)).n + 1)
        self.count.update(count)
        timers = ctx.timer_service()
        timers.register_processing_time_timer(2**50)
        yield value[0], count.n


def counting_objects(directory: Path, out: Path) -> StreamExecutionEnvironment:
    env = environment()
    source = FileSource(directory, "csv", schema="k BIGINT, n BIGINT", bounded=False, max_files_per_trigger=1)
    keyed = env.from_source(source).key_by(lambda row: row[0])
    counted = keyed.process(CountsObjects(), output_type=NUMBERED).uid("objects")
    counted.sink_to(FileSink(str(out), "parquet"))
    return env


@pytest.fixture(scope="module")
def objects(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Kept, Path]:
    """A program with objects in its state, and a savepoint of it, signed with OWN_KEY."""
    directory = tmp_path_factory.mktemp("objects")
    (directory / "in").mkdir()
    write(directory / "in", 0)
    program = Kept(counting_objects(directory / "in", directory / "out"))
    identity = JobIdentity(JobId("0" * 32), savepoint_key=OWN_KEY)
    job = Job(spark, program, directory, job=identity)
    wait_until(lambda: len(counts(directory / "out")) >= 100, "one file", timeout_s=240)
    assert counts(directory / "out") == expected_counts(1)
    job.savepoint(directory / "savepoint", STOP)
    job.ended()
    return program, directory / "savepoint"


def test_the_state_is_shown_without_unpickling_objects(
    spark: SparkSession, objects: tuple[Kept, Path]
) -> None:
    program, savepoint = objects
    (operator,) = shape_of(program.job()).queries[0].operators
    found = read_elements(spark, str(savepoint), "elements", frozenset({operator.operator_hash}), 3)
    states = {name: (s.kind, s.keys, s.entries) for (_, name), s in found.overview.states.items()}
    assert states == {"count": ("value", 4, 4), "processing timers": ("timer", 4, 4)}
    assert len(found.entries) == 3 and found.more
    shown = {repr(entry.value) for entry in found.entries if entry.state == "count"}
    assert shown == {f"<object of {__name__}.Count>"}


def test_objects_are_made_only_of_state_that_is_vouched_for(
    spark: SparkSession, objects: tuple[Kept, Path], tmp_path: Path
) -> None:
    program, savepoint = objects
    settings, shape = RestoreSettings(str(savepoint)), shape_of(program.job())
    named = re.escape(f"holds objects of {__name__}.Count, and this cluster has not signed it")
    for key in (OTHER_KEY, b""):
        with pytest.raises(StateNotTrusted, match=named):
            restore(spark, settings, str(tmp_path / "refused"), shape, key)
    # the same driver again, or the next one: what was copied is still not vouched for
    with pytest.raises(StateNotTrusted, match=named):
        restore(spark, settings, str(tmp_path / "refused"), shape, OTHER_KEY)
    assert restore(spark, settings, str(tmp_path / "signed"), shape, OWN_KEY) is not None
    assert restore(spark, settings, str(tmp_path / "trusted"), shape, OTHER_KEY, trusted=True) is not None


def test_a_manifest_that_was_changed_vouches_for_nothing(
    spark: SparkSession, objects: tuple[Kept, Path], tmp_path: Path
) -> None:
    program, savepoint = objects
    manifest = savepoint / METADATA_FILE
    content = manifest.read_bytes()
    described = json.loads(content)
    described["job_name"] = "another"
    manifest.write_text(json.dumps(described))
    try:
        with pytest.raises(StateNotTrusted, match="has not signed it"):
            settings, shape = RestoreSettings(str(savepoint)), shape_of(program.job())
            restore(spark, settings, str(tmp_path / "job"), shape, OWN_KEY)
    finally:
        manifest.write_bytes(content)
