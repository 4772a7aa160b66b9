"""Keep the list of complete test runs, and warn when the newest one is too old.

    python scripts/lib/full_runs.py add <commit> <passed> <seconds>    append a run of today
    python scripts/lib/full_runs.py check                              print a warning, if there is one

The list is the file ``.ci/full-runs``: a line ``<commit> <YYYY-MM-DD> <passed> <seconds>`` for each run, the
newest last.
"""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Final

FULL_RUNS: Final = Path(__file__).resolve().parents[2] / ".ci" / "full-runs"
MAX_AGE: Final = timedelta(days=3)
_LINE: Final = re.compile(r"([0-9a-f]{7,40}) (\d{4}-\d{2}-\d{2}) (\d+) (\d+)")


@dataclass(frozen=True)
class FullRun:
    """A run of all tests that passed."""

    commit: str
    day: date
    passed: int
    duration_s: int

    def __str__(self) -> str:
        return f"{self.commit} {self.day} {self.passed} {self.duration_s}"


def parse_run(line: str) -> FullRun:
    """Return the run that a line of the list describes.

    Raises
    ------
    ValueError
        The line has another form.
    """
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError(f"not a line '<commit> <YYYY-MM-DD> <passed> <seconds>': {line!r}")
    commit, day, passed, duration_s = found.groups()
    return FullRun(commit, date.fromisoformat(day), int(passed), int(duration_s))


def append_run(path: Path, run: FullRun) -> None:
    """Append a run to the list, which is made when it is missing."""
    line = str(run)
    # what cannot be read again is not written
    parse_run(line)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def newest_run(path: Path) -> FullRun | None:
    """Return the last run of the list, None when there is none."""
    if not path.exists():
        return None
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    runs = [line for line in lines if line and not line.startswith("#")]
    return parse_run(runs[-1]) if runs else None


def age_warning(newest: FullRun | None, today: date) -> str | None:
    """Return what to tell developers when the newest run is missing or older than `MAX_AGE`."""
    if newest is None:
        return "no complete run of the tests is recorded; run scripts/test full"
    if today - newest.day <= MAX_AGE:
        return None
    days = (today - newest.day).days
    return f"the newest complete run of the tests is {days} days old ({newest.commit}); run scripts/test full"


def main(arguments: list[str]) -> None:
    """Run the command line."""
    parser = ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add", help="append a run of today")
    add.add_argument("commit")
    add.add_argument("passed", type=int)
    add.add_argument("seconds", type=int)
    commands.add_parser("check", help="print a warning when the newest run is too old")
    parsed = parser.parse_args(arguments)
    today = date.today()
    try:
        if parsed.command == "add":
            append_run(FULL_RUNS, FullRun(parsed.commit, today, parsed.passed, parsed.seconds))
        elif warning := age_warning(newest_run(FULL_RUNS), today):
            print(f"warning: {warning}", file=sys.stderr)
    except ValueError as error:
        sys.exit(f"{parser.prog}: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
