"""The suite of PyFlink programs is complete: each one is recorded, in the form in which outputs are
compared.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.pyflink.programs import EXAMPLES, EXPECTED, Program, programs

pytestmark = pytest.mark.gate

ALL = list(programs())


@pytest.mark.parametrize("program", ALL, ids=lambda program: program.name)
def test_program_is_recorded(program: Program) -> None:
    assert program.expected.exists(), "scripts/record-pyflink has not run it"
    lines = program.expected_lines()
    # the recorded lines are in the form of `comparable` themselves
    assert program.comparable("\n".join(lines)) == lines


@pytest.mark.parametrize("program", ALL, ids=lambda program: program.name)
def test_program_is_plain_pyflink(program: Program) -> None:
    source = program.path.read_text(encoding="utf-8")
    assert "yarnflow" not in source
    assert 'if __name__ == "__main__":\n    main()' in source


def test_nothing_recorded_is_left_over() -> None:
    recorded = {path.relative_to(EXPECTED) for path in EXPECTED.rglob("*.txt")}
    wanted = {path.relative_to(EXPECTED) for program in ALL for path in (program.expected, program.wanted)}
    wanted |= {Path("examples", f"{Path(name).stem}.txt") for name in EXAMPLES}
    assert recorded == wanted


class TestComparable:
    """`Program.comparable` on programs made up here."""

    def program(self, tmp_path: Path, comments: str) -> Program:
        path = tmp_path / "program.py"
        path.write_text(f'"""A program."""\n{comments}\n')
        return Program.read(path, tmp_path / "program.txt")

    def test_sorted_drops_order_and_subtasks(self, tmp_path: Path) -> None:
        program = self.program(tmp_path, "# compare: sorted")
        assert program.comparable("2> b\n1> c\n1> a\n") == ["a", "b", "c"]
        assert program.comparable("label:2> b\nlabel> a\n") == ["label> a", "label> b"]

    def test_per_key_keeps_the_order_of_a_key(self, tmp_path: Path) -> None:
        program = self.program(tmp_path, "# compare: per-key")
        assert program.comparable("b,2\na,9\nb,1\na,3\n") == ["a,9", "a,3", "b,2", "b,1"]
        assert program.comparable("a,1\na,2\n") != program.comparable("a,2\na,1\n")

    def test_key_is_what_the_program_says(self, tmp_path: Path) -> None:
        program = self.program(tmp_path, "# compare: per-key\n# key: of (\\w+)")
        assert program.comparable("2 of b\n3 of a\n1 of b\n") == ["3 of a", "2 of b", "1 of b"]
        with pytest.raises(ValueError, match="no key in the line 'nothing'"):
            program.comparable("nothing\n")

    def test_exact_keeps_all(self, tmp_path: Path) -> None:
        program = self.program(tmp_path, "# compare: exact\n# subtasks: kept")
        assert program.comparable("2> b\n1> a\n") == ["2> b", "1> a"]

    def test_unknown_comparison(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="about"):
            self.program(tmp_path, "# compare: about")
