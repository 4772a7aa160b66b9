"""The programs of this suite, and in which form their output is compared.

Each program says in a comment how much of the order of its output is certain:

``# compare: sorted``
    Nothing of it: the lines are a multiset.
``# compare: per-key``
    Lines of one key keep their order.  The key is the text before the first comma, or what the first group of
    ``# key: <regular expression>`` finds.
``# compare: exact``
    All of it.

A print sink with more than one subtask begins its lines with the subtask's number.  Which key goes to which
subtask is a matter of hashing, so the number is dropped, unless ``# subtasks: kept`` says that the program
itself decides it.

``# differs: <why>`` says that yarnflow is meant to print something else than Apache PyFlink; what it prints
stands in ``expected/here``.

``# run: gate`` says that the program is of the gate, ``# run: drill`` that another program has most of what
this one has, and that it runs in drills only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
PROGRAMS: Final = HERE / "programs"
EXPECTED: Final = HERE / "expected"

#: what the suite was recorded with
PYFLINK_VERSION: Final = "2.3.0"

#: what it prints is about the job's states, which need a cluster
ABOUT_THE_JOB: Final = "basic_execution_result"
#: programs that the wheel of Apache PyFlink brings, in its folder ``pyflink/examples/datastream``, as
#: far as they need no service and print the same each time; their output is in ``expected/examples``
EXAMPLES: Final = (
    "basic_operations.py",
    "event_time_timer.py",
    "process_json_data.py",
    "state_access.py",
    "windowing/session_with_dynamic_gap_window.py",
    "windowing/session_with_gap_window.py",
    "windowing/sliding_time_window.py",
    "windowing/tumbling_count_window.py",
    "windowing/tumbling_time_window.py",
    "word_count.py",
)

_HEADER = re.compile(r"^# (compare|key|subtasks|differs|run): (.+)$", re.MULTILINE)
_SUBTASK = re.compile(r"^(?:(?P<label>\w+):)?\d+> ")
_FIRST_FIELD = r"([^,]*)"


class Comparison(Enum):
    """How much of the order of a program's lines is certain."""

    SORTED = "sorted"
    PER_KEY = "per-key"
    EXACT = "exact"


@dataclass(frozen=True)
class Program:
    """A program and how its output is compared."""

    name: str
    path: Path
    expected: Path
    comparison: Comparison
    key: re.Pattern[str]
    keeps_subtasks: bool
    #: why yarnflow prints something else; empty = it prints the same
    differs: str
    #: the set of tests that it belongs to: ``gate``, ``full`` or ``drill``
    test_set: str

    @classmethod
    def read(cls, path: Path, expected: Path) -> Program:
        """Read the comments of a program.

        Raises
        ------
        ValueError
            A program of ours does not say how it is compared, or says something unknown.
        """
        said = dict(_HEADER.findall(path.read_text(encoding="utf-8")))
        if "compare" not in said and path.is_relative_to(PROGRAMS):
            raise ValueError(f"{path}: a comment '# compare: sorted | per-key | exact' is missing")
        return cls(
            name=path.stem,
            path=path,
            expected=expected,
            comparison=Comparison(said.get("compare", "sorted")),
            key=re.compile(said.get("key", _FIRST_FIELD)),
            keeps_subtasks=said.get("subtasks") == "kept",
            differs=said.get("differs", ""),
            test_set=said.get("run", "full"),
        )

    def comparable(self, output: str) -> list[str]:
        """Lines of an output in the form in which they stand in the expected file.

        Parameters
        ----------
        output
            What the program and its print sinks wrote to standard output.

        Returns
        -------
        list of str
            Lines, for ``sorted`` in order, for ``per-key`` grouped by key; two runs of a correct runtime
            give equal lists.

        Raises
        ------
        ValueError
            A line of a ``per-key`` program has no key.
        """
        lines = output.splitlines()
        if not self.keeps_subtasks:
            lines = [_without_subtask(line) for line in lines]
        match self.comparison:
            case Comparison.EXACT:
                return lines
            case Comparison.SORTED:
                return sorted(lines)
            case Comparison.PER_KEY:
                return sorted(lines, key=self._key_of)

    def expected_lines(self) -> list[str]:
        """What Apache PyFlink printed, in the form of `comparable`."""
        return self.expected.read_text(encoding="utf-8").splitlines()

    @property
    def wanted(self) -> Path:
        """The file with what yarnflow prints; that of Apache PyFlink unless it differs."""
        return EXPECTED / "here" / self.expected.name if self.differs else self.expected

    def wanted_lines(self) -> list[str]:
        """What yarnflow prints, in the form of `comparable`."""
        return self.wanted.read_text(encoding="utf-8").splitlines()

    def _key_of(self, line: str) -> str:
        found = self.key.search(line)
        if found is None:
            raise ValueError(f"{self.path}: no key in the line {line!r}, by {self.key.pattern!r}")
        return found[1]


def programs() -> Iterator[Program]:
    """All programs of ours, by name."""
    for path in sorted(PROGRAMS.glob("*.py")):
        yield Program.read(path, EXPECTED / f"{path.stem}.txt")


def examples(wheel: Path) -> Iterator[Program]:
    """Programs that Apache PyFlink brings.

    Parameters
    ----------
    wheel
        Folder ``pyflink`` of an installed or unpacked wheel of Apache PyFlink.
    """
    return (example(wheel, name) for name in EXAMPLES)


def example(wheel: Path, name: str) -> Program:
    """One of `examples`."""
    path = wheel / "examples" / "datastream" / name
    return Program.read(path, EXPECTED / "examples" / f"{path.stem}.txt")


def _without_subtask(line: str) -> str:
    return _SUBTASK.sub(lambda found: f"{found['label']}> " if found["label"] else "", line)
