"""The keys of a program's jobs.

A file's name says little: half of the world's programs are called ``main.py``.  So the key that nobody chose
is made of who submits, where the program is, and the job's name.  Whether the program and its arguments are
still the same is told by a digest that goes with the job, whoever chose the key.  Flink has no counterpart.
"""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from yarnflow.core.messages import JobSubmission

#: enough that no two programs of a cluster meet, and short enough for a name of a file
_MARK_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class ProgramIdentity:
    """A program as one user has it."""

    user: str
    #: its file without links; of an uploaded one what the upload is called
    location: str
    #: of its text and its arguments
    digest: str

    @classmethod
    def of_file(
        cls,
        path: Path,
        content: bytes,
        arguments: Sequence[str],
        files: Sequence[str] = (),
        location: str = "",
    ) -> ProgramIdentity:
        """Return that of a program in a file.

        Parameters
        ----------
        path : Path
        content : bytes
            What is in it.
        arguments : sequence of str
        files : sequence of str
            Paths of what is shipped with it (``-pyfs``); what cannot be read is told elsewhere.
        location : str, optional
            In place of the path.
        """
        parts = [_digest(content), list(arguments), [_digest_of_file(Path(file)) for file in files]]
        return cls(_user_name(), location or str(path.resolve()), _digest(json.dumps(parts).encode()))

    @classmethod
    def of_this_process(cls) -> ProgramIdentity | None:
        """Return that of the program that Python runs; None where it has no file, as in a notebook."""
        name = getattr(sys.modules.get("__main__"), "__file__", None)
        if name is None:
            return None
        try:
            return cls.of_file(Path(name), Path(name).read_bytes(), sys.argv[1:])
        except OSError:
            return None


@dataclass(frozen=True, slots=True)
class JobKey:
    """The key of one job, and what goes with it; empty = it has none."""

    key: str = ""
    #: what an earlier version would have made it; empty = the user chose the key, or that is decided
    earlier: str = ""
    #: of what the job runs; empty = not known
    digest: str = ""

    @classmethod
    def of(cls, submission: JobSubmission) -> JobKey:
        """Return that of a job that is submitted."""
        return cls(submission.job_key, submission.earlier_job_key, submission.program_digest)

    def put_on(self, submission: JobSubmission) -> JobSubmission:
        """Return a submission with this key."""
        return replace(
            submission, job_key=self.key, earlier_job_key=self.earlier, program_digest=self.digest
        )


class JobKeyChoice:
    """Keys of a program's jobs, one after the other.

    Parameters
    ----------
    chosen : str
        ``pipeline.job-key``.
    program : ProgramIdentity, optional
        None = not known.
    by_default : bool
        Whether jobs have keys if nobody has chosen one, and the program is known.
    """

    def __init__(
        self, chosen: str = "", program: ProgramIdentity | None = None, *, by_default: bool = True
    ) -> None:
        self._chosen = chosen
        self._by_default = by_default
        self._program = program
        self._used: dict[str, int] = {}

    def next(self, name: str) -> JobKey:
        """Return the key of the next job, which is called ``name``.

        Jobs of one key are told apart by their order, which is the same in every run.
        """
        program = self._program
        if self._chosen:
            digest = "" if program is None else program.digest
            return JobKey(f"{self._chosen}{self._number(self._chosen)}", digest=digest)
        if program is None or not self._by_default:
            return JobKey()
        mark = _digest(f"{program.user}\0{program.location}".encode())[:_MARK_DIGITS]
        number = self._number(name)
        return JobKey(f"{name}@{mark}{number}", earlier=f"{name}{number}", digest=program.digest)

    def _number(self, key: str) -> str:
        used = self._used[key] = self._used.get(key, 0) + 1
        return "" if used == 1 else f"#{used}"


def _user_name() -> str:
    """Return the operating system's user; on YARN each of Hadoop's users has keys of their own anyway."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())  # in containers users may have no name


def _digest_of_file(path: Path) -> str:
    """Return that of a file, or of all modules below a directory."""
    try:
        if not path.is_dir():
            return _digest(path.read_bytes())
        modules = {
            str(module.relative_to(path)): _digest(module.read_bytes())
            for module in path.rglob("*.py")
            if module.is_file()
        }
    except OSError:
        return ""
    return _digest(json.dumps(modules, sort_keys=True).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
