"""State that an earlier version has left, for the other backend of each kind: restored without a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.spark.savepoint_support import DRAIN, restored, use_backend
from integration.spark.translate_support import make_session
from integration.upgrade.cases import CASES, Case, Files
from integration.upgrade.places import own_place, unpack
from integration.upgrade.test_upgrade import SUBMITTED
from yarnflow.cli.info import first_graph
from yarnflow.client.programs.program import load_program
from yarnflow.config.configuration import Configuration
from yarnflow.graph.job_graph import JobGraph

pytestmark = pytest.mark.gate


class GraphOf:
    """A program's job graph."""

    def __init__(self, program: Path, arguments: list[str]) -> None:
        graph = first_graph(load_program(str(program), arguments), Configuration.empty())
        assert graph is not None, f"{program} is a script"
        self._graph = graph

    def job(self) -> JobGraph:
        return self._graph


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = make_session()
    yield session
    session.stop()


@pytest.mark.usefixtures("as_it_was")
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name not in SUBMITTED], ids=lambda case: case.name
)
def test_queries_go_on_from_recorded_state(spark: SparkSession, case: Case) -> None:
    use_backend(spark, case.backend)
    with own_place(case.name) as place:
        unpack(case.archive, place)
        files = Files(case.kind, place)
        files.add_first_half()
        files.add_second_half()
        graph = GraphOf(place / case.program_path, files.arguments())
        conf = {"state.backend.type": case.backend}
        job = restored(spark, graph, case.saved_in(place), place / "job", conf)
        job.wait_until(lambda: files.are_read([place / "job/checkpoint"]), "the rest of the input")
        job.savepoint(place / "drained", DRAIN)
        job.ended()
        assert files.results() == case.kind.all_results()
