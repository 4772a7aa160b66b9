"""What a run of an uploaded program is, and who does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from yarnflow.core.ids import JobId
from yarnflow.core.job.description import JobDescription


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """A program whose main() is to run once, in a process of its own."""

    #: of its own; whoever asks removes it afterwards
    directory: Path
    #: of the uploaded file
    program_id: str
    #: of the program's file; empty = it is a module of several files
    file_name: str
    module: str
    arguments: tuple[str, ...] = ()
    #: over the cluster's
    options: Mapping[str, str] = field(default_factory=dict)
    savepoint_path: str = ""
    claim_mode: str = ""
    allow_non_restored: bool = False

    @property
    def sources(self) -> Path:
        """Where the program's files are."""
        return self.directory / "program"


class ProgramRunner(Protocol):
    """Runs programs beside the JobManager; thread-safe.

    Both calls block, and raise what the program raised, ``RestError`` when it took too long.
    """

    def run(self, program: ProgramRun) -> JobId:
        """The first job that it has submitted."""

    def plan(self, program: ProgramRun) -> JobDescription:
        """The job that it would submit first; nothing is submitted."""
