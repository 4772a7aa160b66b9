"""A batch that a sink has begun, completed by another program."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.spark.savepoint_support import restored, retained_checkpoint
from yarnflow.api import FileSink, FileSource, StreamExecutionEnvironment
from yarnflow.api.executor import use_executor
from yarnflow.config.configuration import Configuration
from yarnflow.errors import StateIncompatible, YarnflowError
from yarnflow.graph.job_graph import JobGraph
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.run.graph_program import GraphProgram
from yarnflow.testing.kept_graph import KeptGraph

FILES, LINES = 3, 10


class Program:
    """Copies numbers, from files of which each is a batch; with a filter or without."""

    def __init__(self, source: Path, out: Path, filtered: bool = False) -> None:
        self._source = source
        self._out = out
        self._filtered = filtered

    def job(self) -> JobGraph:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(2)
        source = FileSource(str(self._source), "csv", "n BIGINT, half BIGINT", max_files_per_trigger=1)
        numbers = env.from_source(source, None, "numbers").uid("numbers")
        if self._filtered:
            numbers = numbers.filter("n >= 0")
        numbers.sink_to(FileSink(str(self._out), "csv", partition_by=["half"]))
        kept = KeptGraph()
        with use_executor(kept):
            env.execute_async("copies")
        return kept.graphs[-1]


def written(out: Path) -> list[int]:
    return sorted(int(line) for file in out.glob("half=*/part-*") for line in file.read_text().split())


def test_a_batch_that_was_begun_is_completed_by_a_program_with_a_filter_more(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of its two files is in its place when the driver dies."""
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for file in range(FILES):
        numbers = range(file * LINES, (file + 1) * LINES)
        (source / f"{file}.csv").write_text("".join(f"{n},{n % 2}\n" for n in numbers))
    moved: list[str] = []
    rename = HadoopFiles.rename

    def crashing(self: HadoopFiles, path: str, target: str) -> None:
        if f"{out}/half=" in target:
            moved.append(target)
            if len(moved) == 4:
                raise OSError("power cut")
        rename(self, path, target)

    first = Program(source, out)
    with monkeypatch.context() as patched:
        patched.setattr(HadoopFiles, "rename", crashing)
        with pytest.raises(YarnflowError):
            attempt(spark, first.job(), tmp_path / "job")
    assert len(written(out)) == LINES * 3 // 2, "a batch and a half"
    retained = retained_checkpoint(first.job(), tmp_path / "job/checkpoint", batch_id=0)

    with pytest.raises(StateIncompatible, match=rf"to {out} .* has written files of batch 1.* any more"):
        restored(spark, Program(source, tmp_path / "elsewhere", True), retained, tmp_path / "refused")
    restored(spark, Program(source, out, True), retained, tmp_path / "next").ended()
    assert written(out) == list(range(FILES * LINES))
    assert not (out / ".yarnflow-staging").exists()
    writers = {file.name.rsplit("-", 2)[0] for file in out.glob("half=*/part-*")}
    assert len(writers) == 1, "the sink of the first program"


def attempt(spark: SparkSession, graph: JobGraph, directory: Path) -> None:
    program = GraphProgram(spark, graph, Configuration.empty(), str(directory / "checkpoint"))
    program.prepare()
    program.start()
    program.await_end()
