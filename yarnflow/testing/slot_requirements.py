"""The ResourceManager as a JobMaster of the same process sees it."""

from __future__ import annotations

from dataclasses import dataclass, field

from yarnflow.core.ids import JobId


@dataclass
class FakeSlotRequirements:
    """Takes the requirements of jobs and gives nobody a slot."""

    #: slots each job wants, as it said last
    declared: dict[JobId, int] = field(default_factory=dict)
    released: list[JobId] = field(default_factory=list)

    def declare_requirements(self, job_id: JobId, slots: int) -> None:
        """Replace what is in :attr:`declared`."""
        self.declared[job_id] = slots

    def release_slots(self, job_id: JobId) -> None:
        """Add to :attr:`released`."""
        self.released.append(job_id)
