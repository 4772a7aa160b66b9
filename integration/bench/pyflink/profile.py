"""Where the time of yarnflow's Python goes: a program's levels in one process, without Spark.

A level's operators get what Spark's workers give them: Arrow batches of lines, blocks by key group, and
state that is written to a log at the end.  CPU time is that of the process, so other load does not count.
"""

from __future__ import annotations

import cProfile
import gc
import pickle
import pstats
import runpy
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa

from integration.bench.pyflink.cases import Case
from integration.bench.pyflink.engines import PROGRAMS
from yarnflow.api.executor import SubmittedJob, use_executor
from yarnflow.graph import import_finder
from yarnflow.graph.closures import load_closure
from yarnflow.graph.connectors.sources import FileSource
from yarnflow.graph.job_graph import JobGraph
from yarnflow.operators.state.backends.turns import HASHMAP
from yarnflow.operators.task.blocks import ALL_GROUPS, END, Block
from yarnflow.operators.task.level_run import LevelRun
from yarnflow.operators.task.micro_batch import MicroBatch
from yarnflow.operators.task.plan import JobInfo, LevelPlan
from yarnflow.spark.elements.block_rows import from_batch, to_batches
from yarnflow.spark.elements.element_frames import ColumnReader
from yarnflow.spark.elements.worker_runs import NEW_OBJECTS_PER_COLLECTION, backends, dumps
from yarnflow.spark.translate.query_groups import query_groups
from yarnflow.testing.state import StoredGroup

T = TypeVar("T")

#: rows of an Arrow batch, as Spark's
_BATCH_ROWS: Final = 10_000
_LAST_SENDER: Final = 2**62
_BATCH: Final = MicroBatch(0, 1_700_000_000_000)


class Profile:
    """CPU time by part.

    Parameters
    ----------
    top : int
        Functions of each part to be listed on standard error; 0 = none, and no profiler slows the run.
    """

    def __init__(self, top: int) -> None:
        self.seconds: dict[str, float] = {}
        self._top = top
        self._profilers: dict[str, cProfile.Profile] = {}

    def run(self, part: str, work: Callable[[], T]) -> T:
        """Do something and count it as a part."""
        profiler = self._profilers.setdefault(part, cProfile.Profile()) if self._top else None
        began = time.process_time()
        made = work() if profiler is None else profiler.runcall(work)
        self.seconds[part] = self.seconds.get(part, 0.0) + time.process_time() - began
        return made

    def print(self) -> None:
        """List the functions that take most time, without those they call."""
        for part, profiler in self._profilers.items():
            print(f"== {part}", file=sys.stderr)
            pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(self._top)


def profile(case: Case, source: Path, records: int, top: int) -> dict[str, float]:
    """CPU time per record of each part, in µs."""
    (group,) = query_groups(graph := _graph_of(case, source))
    plan = group.levels
    assert plan is not None, "the programs are on elements"
    nodes = {node.node_id: node for node in graph.nodes}
    gc.set_threshold(NEW_OBJECTS_PER_COLLECTION)
    found = Profile(top)
    rows: list[pa.RecordBatch] = []
    for number, from_source in enumerate(plan.sources):
        node = nodes[from_source.node_id]
        assert isinstance(node.operator, FileSource), "the programs read files"
        read = ColumnReader(node.output_schema)
        for part, path in enumerate(sorted(Path(node.operator.path.removeprefix("file:")).glob("part-*"))):
            run = _opened(from_source.level, part)
            chunks = map(read, list(_lines(path)))
            blocks = run.run_source(chunks, (number << 20) + part, _BATCH)
            rows += found.run("level 0", lambda blocks=blocks: list(to_batches(blocks)))  # type: ignore[misc]
    made = [block for batch in rows for block in from_batch(batch)]
    for level, groups in zip(plan.levels, plan.groups, strict=True):
        made.append(Block(level.level, ALL_GROUPS, 0, END, _LAST_SENDER, 0, b""))
        made = _level(level, groups, made, found)
    found.print()
    return {part: round(seconds / records * 1e6, 3) for part, seconds in found.seconds.items()}


def _level(level: LevelPlan, groups: int, blocks: list[Block], found: Profile) -> list[Block]:
    made = [block for block in blocks if block.level != level.level]
    of_group: dict[int, list[Block]] = {}
    for block in blocks:
        if block.level == level.level:
            for group in range(groups) if block.group == ALL_GROUPS else (block.group,):
                of_group.setdefault(group, []).append(block)
    run = _opened(level, 0)
    for group, own in of_group.items():
        turn = backends.open(HASHMAP, StoredGroup(), None)
        results = run.run_group(group, turn.store, own, _BATCH)
        made += found.run(f"level {level.level}", lambda results=results: list(results))  # type: ignore[misc]
        found.run(f"state of level {level.level}", turn.commit)
    return made


def _opened(level: LevelPlan, subtask: int) -> LevelRun:
    return LevelRun(level, JobInfo("profile"), subtask, load_closure, dumps, pickle.loads)


def _lines(path: Path) -> Iterator[pa.RecordBatch]:
    lines = path.read_text().splitlines()
    for start in range(0, len(lines), _BATCH_ROWS):
        yield pa.RecordBatch.from_arrays([pa.array(lines[start : start + _BATCH_ROWS])], names=["value"])


class _Planned(BaseException):
    """Ends a program where it submits its job."""

    def __init__(self, graph: JobGraph) -> None:
        self.graph = graph


class _Planner:
    def submit(self, job_graph: JobGraph) -> SubmittedJob:
        raise _Planned(job_graph)


def _graph_of(case: Case, source: Path) -> JobGraph:
    program = str(PROGRAMS / case.program)
    before, sys.argv = sys.argv, [program, str(source), "process", *case.arguments]
    import_finder.install()
    try:
        with use_executor(_Planner()):
            runpy.run_path(program, run_name="__main__")
    except _Planned as planned:
        return planned.graph
    finally:
        sys.argv = before
    raise AssertionError(f"{program} submits no job")
