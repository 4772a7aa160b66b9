"""Job graphs of an earlier version: programs still give the same ones, and those stored are still read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import pytest

from tests.upgrade.recorded_graphs import RecordedProgram, closures_in, comparable, programs
from yarnflow.core.json_codec import from_json
from yarnflow.core.messages import JobSubmission
from yarnflow.graph.closures import load_closure
from yarnflow.graph.codec import job_graph_from_json, job_graph_to_json

PROGRAMS: Final = tuple(programs())
EVERY_PROGRAM: Final = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
#: of the Python that pickled the functions
PYTHON: Final = (3, 11)
#: programs whose operators call Python
WITH_FUNCTIONS: Final = 6


@EVERY_PROGRAM
def test_a_program_gives_the_recorded_job_graph(program: RecordedProgram, tmp_path: Path) -> None:
    recorded, now = program.file.read_text(encoding="utf-8"), program.submitted(tmp_path)
    assert comparable(now) == comparable(recorded)


@EVERY_PROGRAM
def test_a_recorded_job_graph_is_read_and_written_as_it_was(program: RecordedProgram) -> None:
    recorded = from_json(JobSubmission, program.file.read_text(encoding="utf-8"))
    assert job_graph_to_json(job_graph_from_json(recorded.job_graph_json)) == recorded.job_graph_json


@pytest.mark.skipif(sys.version_info[:2] != PYTHON, reason="no Python loads functions of another one")
def test_functions_of_recorded_job_graphs_are_loaded() -> None:
    loaded = set()
    for program in PROGRAMS:
        recorded = from_json(JobSubmission, program.file.read_text(encoding="utf-8"))
        for node in job_graph_from_json(recorded.job_graph_json).nodes:
            for closure in closures_in(node.operator):
                load_closure(closure)
                loaded.add(program.name)
    assert len(loaded) == WITH_FUNCTIONS
