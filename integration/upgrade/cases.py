"""Programs whose state is recorded: their input, in two halves, and their results.

The state is recorded between the two halves.  Each file of input is a micro-batch of its own, so the results
of a run that was never stopped are certain, and those before and after an upgrade together must be the same.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from integration.conftest import wait_until
from integration.living_files import files_below
from integration.upgrade.places import DATA, PROGRAMS, VERSION

BACKENDS: Final = ("hashmap", "rocksdb")
#: of an input file: sources order files by it, and forget those that are much older than others
_FIRST_FILE_S: Final = 1_790_000_000

_EVENTS: Final = ("a,1\nb,2\na,3\n", "a,4\nc,5\nb,6\n", "a,7\nc,8\n", "a,101\nb,102\nc,103\n")
_NAMES: Final = ("a,1,ann\nb,4,bob\n", "", "", "c,101,cid\n")
_RULES: Final = ("double,2\nten,10\n", "", "", "hundred,100\nlast,104\n")
#: steps before the upgrade; the last one is behind it
_FIRST_STEPS: Final = 3


@dataclass(frozen=True)
class Kind:
    """A kind of program."""

    name: str
    #: names of its directories of input
    inputs: tuple[str, ...] = ("events",)
    is_script: bool = False

    @property
    def program(self) -> Path:
        """Return its file."""
        return PROGRAMS / f"{self.name}.py"

    @property
    def expected(self) -> Path:
        """Return the file with the results of a run that was never stopped."""
        return DATA / VERSION / f"{self.name}.expected"

    def all_results(self) -> Counter[str]:
        """Return what the whole input gives."""
        return Counter(self.expected.read_text(encoding="utf-8").splitlines())


KINDS: Final = {
    kind.name: kind
    for kind in (
        Kind("keyed_state"),
        Kind("windows_and_streams", ("events", "names", "rules")),
        Kind("columns"),
        Kind("sql", ("events", "names")),
        Kind("script", is_script=True),
        Kind("typed_functions"),
    )
}
_CONTENT: Final = {"events": _EVENTS, "names": _NAMES, "rules": _RULES}


@dataclass(frozen=True)
class Case:
    """A kind of program with a state backend, and in which form its state is kept."""

    kind: Kind
    backend: str
    #: ``savepoint`` or ``checkpoint``, a retained one
    form: str = "savepoint"

    @property
    def name(self) -> str:
        """Return the name of its place and its archive."""
        return f"{self.kind.name}-{self.backend}-{self.form}"

    @property
    def archive(self) -> Path:
        """Return the archive of the recorded state, and of the results until then."""
        return DATA / VERSION / f"{self.name}.tar.xz"

    @property
    def keeps_location(self) -> bool:
        """Tell whether a script finds the state at its own location, too; else it is brought there."""
        return self.kind.is_script and self.backend == "hashmap"

    @property
    def options(self) -> list[str]:
        """Return what the job needs beyond its program."""
        return [f"-Dstate.backend.type={self.backend}"]

    @property
    def program_path(self) -> str:
        """Return where in its place the program is."""
        return f"programs/{self.kind.program.name}"

    def saved_in(self, place: Path) -> Path:
        """Return where in its place the recorded state is that a job starts from."""
        if self.form == "savepoint":
            return place / "savepoint"
        checkpoints = place.glob("checkpoints/*/chk-*")
        return max(checkpoints, key=lambda path: int(path.name.removeprefix("chk-")))


CASES: Final = (
    *(Case(kind, backend) for kind in KINDS.values() for backend in BACKENDS),
    Case(KINDS["keyed_state"], "hashmap", "checkpoint"),
    Case(KINDS["keyed_state"], "rocksdb", "checkpoint"),
    Case(KINDS["columns"], "rocksdb", "checkpoint"),
)


class Files:
    """Input and output of a program in a directory."""

    def __init__(self, kind: Kind, directory: Path) -> None:
        self._kind = kind
        self.input = directory / "in"
        self.output = directory / "out"
        for name in kind.inputs:
            (self.input / name).mkdir(parents=True, exist_ok=True)

    def arguments(self, bounded: bool = False, stopped: bool = True) -> list[str]:
        """Return those of the program.

        Parameters
        ----------
        bounded : bool
            It ends when the input that there is has been read.
        stopped : bool
            Some time lies between the two halves of the input.
        """
        return [str(self.input), str(self.output), "bounded" if bounded else "", "stopped" if stopped else ""]

    def add(self, step: int) -> None:
        """Write the files of a step."""
        for name in self._kind.inputs:
            if content := _CONTENT[name][step]:
                hidden = self.input / name / f".{step}.csv"
                hidden.write_text(content)
                os.utime(hidden, (_FIRST_FILE_S + step, _FIRST_FILE_S + step))
                hidden.rename(hidden.with_name(f"{step}.csv"))

    def add_first_half(self) -> None:
        """Write what was there when the state was recorded."""
        for step in range(_FIRST_STEPS):
            self.add(step)

    def add_second_half(self) -> None:
        """Write the rest."""
        self.add(_FIRST_STEPS)

    def feed(self, checkpoints: list[Path]) -> None:
        """Write the first half to a running job, step by step.

        Parameters
        ----------
        checkpoints : list of Path
            Directories of which each has those of queries, or is a query's own.
        """
        for step in range(_FIRST_STEPS):
            self.add(step)
            self.await_read(checkpoints)

    def await_read(self, checkpoints: list[Path]) -> None:
        """Wait until all queries have committed all that there is."""
        wait_until(lambda: self.are_read(checkpoints), f"{self._kind.name} to have read {self.input}")

    def results(self) -> Counter[str]:
        """Return the lines written so far, each with the name of its output."""
        found: Counter[str] = Counter()
        for path in files_below(self.output, "part-*"):
            if "_temporary" not in path.parts and not path.name.endswith(".crc"):
                name = path.relative_to(self.output).parts[0]
                found.update(f"{name} {line}" for line in path.read_text(encoding="utf-8").splitlines())
        return found

    def are_read(self, checkpoints: list[Path]) -> bool:
        """Tell whether all queries have committed all that there is."""
        queries = []
        for directory in checkpoints:
            own = [directory] if (directory / "offsets").is_dir() else []
            queries += own or [path for path in directory.glob("query-*") if path.is_dir()]
        try:
            return bool(queries) and all(self._has_read(query) for query in queries)
        except FileNotFoundError:
            # a restored directory gets its name only when it is whole, and Spark deletes what is old
            return False

    def _has_read(self, query: Path) -> bool:
        newest = _newest(query / "offsets")
        if newest < 0 or newest != _newest(query / "commits"):
            return False
        offsets = (query / "offsets" / str(newest)).read_text(encoding="utf-8").splitlines()[2:]
        read: set[str] = set()
        for number, offset in enumerate(offsets):
            source = query / "sources" / str(number)
            entries = _entries(source)
            if entries and offset != json.dumps({"logOffset": _newest(source)}, separators=(",", ":")):
                # the files have been found, and are of the next batch
                return False
            read |= entries
        directories = {Path(path).parent for path in read}
        there = {str(path) for folder in directories for path in folder.glob("*.csv")}
        return bool(read) and there <= read


def _newest(log: Path) -> int:
    return max((int(path.name) for path in log.glob("[0-9]*")), default=-1)


def _entries(source: Path) -> set[str]:
    """Return the paths in the log of a source of files; that of a clock has none."""
    found = set()
    for log in source.glob("[0-9]*"):
        for line in log.read_text(encoding="utf-8").splitlines()[1:]:
            entry = json.loads(line)
            if isinstance(entry, dict):
                found.add(str(entry["path"]).removeprefix("file://"))
    return found
