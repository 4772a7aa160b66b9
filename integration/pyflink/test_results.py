"""Each program prints what Apache PyFlink 2.3 printed, record by record, or what its page in ``docs`` says.

All run in one Spark session, one after the other, as queries of a driver run them; what lies between a
program and its driver is tested elsewhere.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.pyflink.programs import ABOUT_THE_JOB, EXAMPLES, Program, example, programs
from integration.pyflink.query_jobs import Queries
from integration.spark.shared_jvm import shared_session
from tests.pages import PageProgram, all_programs
from yarnflow.api.executor import use_executor
from yarnflow.client.programs.program import load_program, run_main

_MARKS = {"gate": [pytest.mark.gate], "full": [], "drill": [pytest.mark.drill]}
ALL = [
    pytest.param(program, id=program.name, marks=_MARKS[program.test_set])
    for program in programs()
    if program.name != ABOUT_THE_JOB
]


def printed_by(program: Program, session: SparkSession, directory: Path) -> list[str]:
    """Run a program; its lines in the form in which they are compared."""
    return program.comparable(output_of(program.path, session, directory))


def output_of(path: Path, session: SparkSession, directory: Path) -> str:
    """Run a program; what it and its print sinks wrote."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), use_executor(Queries(session, directory)):
        run_main(load_program(str(path)))
    return printed.getvalue()


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session for all programs."""
    with shared_session() as session:
        yield session


@pytest.mark.usefixtures("as_it_was")
@pytest.mark.parametrize("program", ALL)
def test_program_prints_what_it_prints_on_pyflink(
    program: Program, spark: SparkSession, tmp_path: Path
) -> None:
    assert printed_by(program, spark, tmp_path) == program.wanted_lines()


@pytest.mark.usefixtures("as_it_was")
@pytest.mark.parametrize(
    "program", [program for program in all_programs() if program.is_job], ids=lambda program: program.name
)
def test_program_of_a_page_prints_what_the_page_says(
    program: PageProgram, spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "program.py"
    path.write_text(program.source, encoding="utf-8")
    assert program.comparable(output_of(path, spark, tmp_path)) == program.wanted_lines()


@pytest.mark.usefixtures("as_it_was")
@pytest.mark.parametrize("name", EXAMPLES)
def test_example_of_the_wheel_runs_unmodified(
    name: str, wheel: Path, spark: SparkSession, tmp_path: Path
) -> None:
    program = example(wheel, name)
    assert printed_by(program, spark, tmp_path) == program.wanted_lines()
