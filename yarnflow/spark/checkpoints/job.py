"""Whose state a program's checkpoints and savepoints are, and whether it may still write.

Plain values only.  Flink counterpart: the ``JobID`` and the ``MasterState`` of a savepoint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from yarnflow.core.ids import JobId

#: returns while this driver may write; raises LeaseLost when it may not (any more)
Fence = Callable[[], None]


def no_fence() -> None:
    """Without high availability a driver is the only one there can be."""


@dataclass(frozen=True, slots=True)
class JobIdentity:
    """What a savepoint says of the job it is of."""

    job_id: JobId
    job_name: str = ""
    job_key: str = ""
    #: with which its savepoints are signed; empty = they are not
    savepoint_key: bytes = field(default=b"", repr=False)

    @classmethod
    def nobody(cls) -> JobIdentity:
        """For programs that are not part of a job: tests, mostly."""
        return cls(JobId("0" * 32))
