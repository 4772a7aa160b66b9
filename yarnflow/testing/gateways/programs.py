"""Uploaded programs that do not run."""

from __future__ import annotations

from dataclasses import dataclass, field

from yarnflow.core.ids import JobId
from yarnflow.core.job.description import JobDescription
from yarnflow.rest.programs.running import ProgramRun


@dataclass
class FakeProgramRunner:
    """:class:`~yarnflow.rest.programs.running.ProgramRunner` that remembers what it was asked for."""

    job_id: JobId
    description: JobDescription
    error: Exception | None = None
    asked: list[ProgramRun] = field(default_factory=list)
    #: of the last one: path → content
    files: dict[str, str] = field(default_factory=dict)

    def run(self, program: ProgramRun) -> JobId:
        """Its job."""
        self._ask(program)
        return self.job_id

    def plan(self, program: ProgramRun) -> JobDescription:
        """Its plan."""
        self._ask(program)
        return self.description

    def _ask(self, program: ProgramRun) -> None:
        self.asked.append(program)
        found = (path for path in program.sources.rglob("*") if path.is_file())
        self.files = {path.relative_to(program.sources).as_posix(): path.read_text() for path in found}
        if self.error is not None:
            raise self.error
