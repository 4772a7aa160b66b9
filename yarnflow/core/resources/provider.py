"""What is said about workers and TaskManagers inside one machine, never over Thrift.

Flink counterparts: the callbacks of ``ResourceEventHandler``, ``TaskManagerInfo`` of its REST API.
"""

from __future__ import annotations

from dataclasses import dataclass

from yarnflow.core.ids import JobId
from yarnflow.core.messages import TaskManagerRegistration


@dataclass(frozen=True, slots=True)
class WorkerExit:
    """The ResourceProvider reports the end of a worker."""

    worker_id: str
    #: negative = killed by that signal, or YARN's own codes (-104 = too much memory); None = unknown
    exit_status: int | None
    #: what the provider says about it, e.g. YARN's diagnostics; one line or several
    diagnostics: str = ""
    #: it was asked to end
    released: bool = False


@dataclass(frozen=True, slots=True)
class TaskManagerInfo:
    """A registered TaskManager as the web page shows it."""

    registration: TaskManagerRegistration
    slots: int
    free_slots: int
    last_heartbeat_ms: int
    #: of each slot that is not free
    job_ids: tuple[JobId, ...] = ()


@dataclass(frozen=True, slots=True)
class ProviderState:
    """Open requests of the ResourceProvider."""

    #: requests that were not granted yet
    ungranted: int
    #: why it takes long, e.g. the queue's state; empty = nothing to say
    message: str = ""
    #: worker ids of the workers that were granted and have not ended, registered here or not
    granted: tuple[str, ...] = ()
