#!/usr/bin/env python3
"""Keep the green runs of ``.ci/run`` in the user's state folder, one line each, the newest last.

A line is ``<commit> <seconds> <load> <flaky>``: the commit that was tested, how long the run took, the load
average of the machine when the run began, and how many tests passed at their second try only.

    green_runs.py base                                 print the newest tested ancestor of HEAD, or nothing
    green_runs.py add COMMIT SECONDS LOAD FLAKY        note a green run
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


def state_file(environment: Mapping[str, str]) -> Path:
    """Return the file, ``${XDG_STATE_HOME:-~/.local/state}/yarnflow/ci-green``."""
    state = environment.get("XDG_STATE_HOME") or Path(environment.get("HOME", "/"), ".local/state")
    return Path(state, "yarnflow/ci-green")


def newest_tested(lines: Iterable[str], ancestors: Sequence[str]) -> str | None:
    """Return the first of ``ancestors`` (nearest first) that has a line, or None."""
    tested = {line.split()[0] for line in lines if line.strip()}
    return next((commit for commit in ancestors if commit in tested), None)


def add_line(file: Path, commit: str, seconds: int, load: float, flaky: int) -> None:
    """Append the line of one green run; make the folder, for its owner alone, where it is missing."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(f"{commit} {seconds} {load:.2f} {flaky}\n")


def _ancestors_of_head() -> list[str]:
    """List the ancestors of HEAD, nearest first, without HEAD itself."""
    done = subprocess.run(
        ["git", "rev-list", "--topo-order", "HEAD"], capture_output=True, text=True, check=True
    )
    return done.stdout.split()[1:]


def main(arguments: Sequence[str]) -> int:
    """Run one of the two commands."""
    file = state_file(os.environ)
    match arguments:
        case ["base"]:
            lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
            print(newest_tested(lines, _ancestors_of_head()) or "")
        case ["add", commit, seconds, load, flaky]:
            add_line(file, commit, int(seconds), float(load), int(flaky))
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
