"""Jobs as their queries alone, in a Spark session of this process: no cluster stands between."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from integration.conftest import wait_until
from yarnflow.api.executor import JobExecutionResult
from yarnflow.config.configuration import Configuration
from yarnflow.core.collect import parts
from yarnflow.core.ids import JobId
from yarnflow.core.states import JobStatus
from yarnflow.graph.job_graph import JobGraph
from yarnflow.spark.run.graph_program import GraphProgram

_PART_KEY = b"of tests"


@dataclass
class QueryJob:
    """A :class:`yarnflow.api.executor.CollectingJob` that is nothing but its queries."""

    queries: GraphProgram
    directory: Path
    job_id: JobId = JobId("0" * 32)

    def get_job_status(self) -> JobStatus:
        return JobStatus.RUNNING

    def cancel(self) -> None:
        self.queries.stop()

    def begin_savepoint(
        self, target_dir: str, *, stop: bool = False, drain: bool = False
    ) -> Callable[[], str]:
        raise NotImplementedError

    def get_job_execution_result(self) -> JobExecutionResult:
        self.queries.await_end()
        return JobExecutionResult(self.job_id, -1)

    def collected(self) -> Iterator[Any]:
        """The elements of committed micro-batches; a part is deleted when it was read."""
        running = threading.Thread(target=self.queries.await_end)
        running.start()
        try:
            while path := wait_until(lambda: self._next_part() or not running.is_alive(), "a part"):
                if path is True:
                    return
                assert isinstance(path, Path)
                content = parts.unseal(_PART_KEY, path.name, path.read_bytes())
                for payload in parts.unpack(content):
                    yield from pickle.loads(payload)
                path.unlink()
        finally:
            self.cancel()
            running.join()

    def _next_part(self) -> Path | None:
        directory = next(self.directory.glob(f"{parts.DIRECTORY}/*"), None)
        if directory is None:
            return None
        commits = self.directory.glob(f"query-{directory.name}/commits/[0-9]*")
        committed = max((int(commit.name) for commit in commits), default=-1)
        names = parts.readable(parts.waiting([path.name for path in directory.iterdir()], ""), committed)
        return directory / names[0] if names else None


@dataclass
class Queries:
    """Runs jobs in a session of this process."""

    spark: SparkSession
    directory: Path
    jobs: int = 0

    def submit(self, job_graph: JobGraph) -> QueryJob:
        self.jobs += 1
        directory = self.directory / f"job-{self.jobs}"
        configuration = Configuration.from_dict(job_graph.configuration, source="the program")
        queries = GraphProgram(self.spark, job_graph, configuration, str(directory), part_key=_PART_KEY)
        queries.prepare()
        queries.start()
        return QueryJob(queries, directory)
