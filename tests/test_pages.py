"""The pages of ``docs/programs``: each program says what it prints, and those without a job print it."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from tests.pages import PAGES, PageProgram, all_programs, page_programs

PROGRAMS = all_programs()


def test_every_program_has_an_output() -> None:
    assert len(PAGES) > 5 and PROGRAMS
    assert not [program.name for program in PROGRAMS if program.output is None]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_programs_are_python(program: PageProgram) -> None:
    compile(program.source, program.name, "exec")


@pytest.mark.parametrize(
    "program", [program for program in PROGRAMS if not program.is_job], ids=lambda program: program.name
)
def test_program_without_a_job_prints_what_its_page_says(program: PageProgram) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program.source, program.name, "exec"), {"__name__": "__main__"})
    assert program.comparable(printed.getvalue()) == program.wanted_lines()


def test_blocks_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nprint(1)\n```\nprints\n```text\n1\n```\n```sh\nls\n```\n"
        "```python\nenv.execute()\n```\n```text any order\nb\na\n```\n```python\npass\n```\n"
    )
    first, second, third = page_programs(page)
    assert (first.name, first.output, first.any_order, first.is_job) == ("page-1", ("1",), False, False)
    assert second.is_job and second.wanted_lines() == second.comparable("a\nb\n") == ["a", "b"]
    assert first.comparable("b\na\n") == ["b", "a"]
    assert third.output is None
