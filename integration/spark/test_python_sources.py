"""Data sources of users in DataStream programs: what is read, what is written, and what their errors say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from integration.conftest import wait_until
from integration.spark.data_sources import Arrows, Batches, Numbers, Polled
from integration.spark.test_elements import environment, program_of
from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common import Types
from yarnflow.api.datastream.connectors.python import PythonSink, PythonSource
from yarnflow.errors import UserCodeError
from yarnflow.spark.run.user_errors import map_spark_error

PAIR = Types.ROW_NAMED(["n", "text"], [Types.LONG(), Types.STRING()])


def run(spark: SparkSession, env: StreamExecutionEnvironment, directory: Path) -> None:
    program = program_of(spark, env, directory / "checkpoint")
    program.start()
    program.await_end()


def failure(spark: SparkSession, env: StreamExecutionEnvironment, directory: Path) -> UserCodeError:
    """What the job would fail with."""
    with pytest.raises(Exception) as raised:
        run(spark, env, directory)
    error = map_spark_error(raised.value)
    assert isinstance(error, UserCodeError), error
    return error


def written(path: Path) -> list[list[Any]]:
    """All rows of the files that batches left."""
    return sorted(row for file in path.glob("*.json") for row in json.loads(file.read_text()))


def expected(rows: int) -> list[list[Any]]:
    return [[n, f"row {n}"] for n in range(rows)]


@pytest.mark.parametrize(
    "bounded",
    [pytest.param(True, id="by its reader", marks=pytest.mark.gate), pytest.param(None, id="by its stream")],
)
def test_rows_come_once(spark: SparkSession, tmp_path: Path, bounded: bool | None) -> None:
    env = environment()
    source = PythonSource(Numbers, {"rows": 20}, bounded=bounded)
    rows = env.from_source(source, None, "numbers")
    # columns and elements
    rows.filter("n >= 10").sink_to(PythonSink(Numbers, {"path": tmp_path / "columns"}))
    rows.map(lambda row: (row.n * 2, row.text), PAIR).sink_to(
        PythonSink(Numbers, {"path": tmp_path / "elements"})
    )
    if bounded:
        run(spark, env, tmp_path)
    else:
        program = program_of(spark, env, tmp_path / "checkpoint")
        program.start()
        wait_until(lambda: len(written(tmp_path / "elements")) >= 20, "all elements")
        wait_until(lambda: len(written(tmp_path / "columns")) >= 10, "all columns")
        program.stop()
    assert written(tmp_path / "columns") == expected(20)[10:]
    assert written(tmp_path / "elements") == [[n * 2, f"row {n}"] for n in range(20)]


def test_polled_numbers_are_elements(spark: SparkSession, tmp_path: Path) -> None:
    env = environment()
    rows = env.from_source(PythonSource(Polled, {"rows": 12}), None, "polled")
    rows.map(lambda row: (row.n, "x"), PAIR).sink_to(PythonSink(Numbers, {"path": tmp_path / "out"}))
    program = program_of(spark, env, tmp_path / "checkpoint")
    program.start()
    wait_until(lambda: len(written(tmp_path / "out")) >= 12, "all rows")
    program.stop()
    assert [row[0] for row in written(tmp_path / "out")] == list(range(12))


def test_arrow_batches_and_writers_of_batches(spark: SparkSession, tmp_path: Path) -> None:
    env = environment(1)
    rows = env.from_source(PythonSource(Arrows), None, "arrows")
    rows.sink_to(PythonSink(Arrows, {"path": tmp_path / "out"}))
    rows.sink_to(PythonSink(Batches, {"path": tmp_path / "rows"}))
    rows.sink_to(PythonSink(Batches, {"path": tmp_path / "arrow", "arrow": True}))
    run(spark, env, tmp_path)
    assert [row[0] for row in written(tmp_path / "out")] == list(range(6))
    for name in ("rows", "arrow"):
        assert (tmp_path / name).read_text().split() == [str(n) for n in range(6)]


@pytest.mark.gate
def test_a_batch_that_is_done_again_has_its_number_and_its_partitions(
    spark: SparkSession, tmp_path: Path
) -> None:
    for rows in (20, 999):
        env = environment()
        options = {"rows": rows, "asked": tmp_path / "asked"}
        stream = env.from_source(PythonSource(Numbers, options, bounded=True), None, "numbers")
        stream.sink_to(PythonSink(Numbers, {"path": tmp_path / "out"}))
        run(spark, env, tmp_path)
        for commit in tmp_path.rglob("commits/*0*"):
            commit.unlink()
    assert (tmp_path / "asked").read_text().split() == ["asked"]
    assert written(tmp_path / "out") == expected(20)


def test_errors_name_the_line_of_the_class(spark: SparkSession, tmp_path: Path) -> None:
    def program(source: dict[str, object], sink: dict[str, object]) -> StreamExecutionEnvironment:
        env = environment()
        stream = env.from_source(PythonSource(Numbers, {"rows": 20, **source}, bounded=True), None, "numbers")
        stream.sink_to(PythonSink(Numbers, {"path": tmp_path / "out", **sink}))
        return env

    found = failure(spark, program({"bad": 7}, {}), tmp_path / "read")
    assert found.message.startswith("ValueError: cannot read 7 (in function read, data_sources.py:")
    found = failure(spark, program({"asked": tmp_path}, {}), tmp_path / "plan")
    assert found.message.startswith("IsADirectoryError")
    assert "in function partitions, data_sources.py:" in found.message
    found = failure(spark, program({}, {"bad": 7}), tmp_path / "write")
    assert found.message.startswith("ValueError: cannot write 7 (in function write, data_sources.py:")
    assert (tmp_path / "out" / "0.aborted").exists()
    (tmp_path / "out" / "0.aborted").unlink()
    found = failure(spark, program({}, {"bad-commit": "yes"}), tmp_path / "commit")
    assert found.message.startswith("RuntimeError: the store is closed (in function commit, data_sources.py:")
    assert (tmp_path / "out" / "0.aborted").exists()
    assert not written(tmp_path / "out")


def test_errors_of_a_stream_reader_name_its_line(spark: SparkSession, tmp_path: Path) -> None:
    env = environment()
    # its latestOffset compares a number with text
    stream = env.from_source(PythonSource(Numbers, {"rows": "many"}), None, "numbers")
    stream.sink_to(PythonSink(Numbers, {"path": tmp_path / "out"}))
    found = failure(spark, env, tmp_path)
    assert found.message.startswith("ValueError: invalid literal for int()")
    assert "in function streamReader, data_sources.py:" in found.message
