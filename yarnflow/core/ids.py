"""Identifiers, as distinct types so that one cannot stand for another.

Flink counterparts: ``JobID`` (32 hex digits), ``AllocationID``, ``ResourceID``.
Creating ids needs randomness, which ``core`` does not have; see ``runtime``.
"""

from __future__ import annotations

import re
from typing import Final, NewType

JobId = NewType("JobId", str)
AllocationId = NewType("AllocationId", str)
#: a TaskManager's own name, new for every process
TaskManagerId = NewType("TaskManagerId", str)
#: one driver process; new for every attempt
DriverId = NewType("DriverId", str)
#: one executor JVM; Spark wants a number, never reused within a driver
ExecutorId = NewType("ExecutorId", str)
VertexId = NewType("VertexId", str)

_HEX32: Final = re.compile(r"[0-9a-f]{32}")


def is_job_id(text: str) -> bool:
    """Whether ``text`` has the form of a job id: 32 lower-case hexadecimal digits."""
    return _HEX32.fullmatch(text) is not None
