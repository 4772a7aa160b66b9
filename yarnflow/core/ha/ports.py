"""What the runtime needs from a coordination service, as protocols and plain values.

``ha`` implements them over ZooKeeper (and, without high availability, over nothing or a
directory); ``runtime`` and ``entrypoint`` see only these.  Methods may block; they raise
:class:`yarnflow.errors.YarnflowError` and nothing else.  Listeners are called from any thread and
must only post.

Flink counterparts: ``HighAvailabilityServices``, ``LeaderElection``, ``LeaderRetrievalService``,
``ExecutionPlanStore``, ``JobResultStore``, ``CompletedCheckpointStore``, ``CheckpointIDCounter``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from yarnflow.core.checkpoint.messages import CheckpointInfo
from yarnflow.core.cluster_result import ClusterResult
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.messages import Fence, JobDetails, JobSubmission, LeaderInfo


@dataclass(frozen=True, slots=True)
class MasterInfo:
    """One master process of a cluster, leader or standby."""

    #: new for every process
    master_id: str
    #: Thrift, ``host:port``
    address: str
    host: str
    pid: int
    #: YARN application it runs in; empty elsewhere
    application_id: str = ""
    web_address: str = ""
    #: time-ordered, so that the oldest standby can be told
    sequence: int = 0


class LeaderContender(Protocol):
    """Whoever may become leader; methods are called one after another and must be quick."""

    def standing_by(self) -> None:
        """It is a candidate, and another one may lead; called before all others, if at all."""

    def granted(self, fence: Fence) -> None:
        """It leads from now on, under this fence."""

    def suspended(self) -> None:
        """The connection is lost: still leader, perhaps; nothing may be decided for good."""

    def resumed(self) -> None:
        """The connection is back within the session: leader all the time."""

    def revoked(self) -> None:
        """It does not lead any more; another master may."""


class LeaderElection(Protocol):
    """One candidacy per process; that of a single master is granted at once.  Flink: ``LeaderElection``."""

    def start(self, contender: LeaderContender, me: MasterInfo) -> None:
        """Stand for election; ``me`` is listed among the masters from now on."""

    def publish(self, leader: LeaderInfo) -> None:
        """As leader: say where to be reached.  Raises LeadershipLost when it does not lead."""

    def confirm(self, fence: Fence) -> None:
        """Have ZooKeeper say that this process leads under ``fence``.  Raises LeadershipLost if not."""

    def masters(self) -> Sequence[MasterInfo]:
        """All candidates there are now, by age of their candidacy."""

    def on_masters(self, listener: Callable[[Sequence[MasterInfo]], None]) -> None:
        """Call ``listener`` whenever candidates come or go."""

    def close(self) -> None:
        """Withdraw; a leader is followed at once.  Idempotent."""


class LeaderRetrieval(Protocol):
    """Who leads now; one implementation for each place where that is said.

    Flink: ``LeaderRetrievalService``.
    """

    @property
    def may_change(self) -> bool:
        """Another master may take over; where not, the end of the master is that of its cluster."""

    def leader(self) -> LeaderInfo | None:
        """The leader, None while there is none; may block.

        Raises
        ------
        YarnflowError
            It cannot be told: ZooKeeper, a file system or a master does not answer.
        """

    def on_leader(self, listener: Callable[[LeaderInfo | None], None]) -> None:
        """Call ``listener`` with the present leader and with each change."""

    def close(self) -> None: ...


class PolledRetrieval:
    """Base of a :class:`LeaderRetrieval` that is only asked: it hears of no change, and holds nothing."""

    def on_leader(self, listener: Callable[[LeaderInfo | None], None]) -> None:
        """The listener is never called."""

    def close(self) -> None:
        """Nothing is held."""


class JobGraphStore(Protocol):
    """Jobs that were accepted and are not over.  Flink: ``ExecutionPlanStore``."""

    def put(self, submission: JobSubmission) -> None:
        """Idempotent by job id; durable when it returns."""

    def get(self, job_id: JobId) -> JobSubmission | None: ...

    def job_ids(self) -> Sequence[JobId]:
        """In order of submission."""

    def mark_canceled(self, job_id: JobId) -> None:
        """Somebody wants the end of a stored job: durable when it returns.  Idempotent."""

    def is_canceled(self, job_id: JobId) -> bool:
        """Whether a stored job is marked so."""

    def remove(self, job_id: JobId) -> None:
        """With everything else of the job that is not retained.  Idempotent."""


class JobResultStore(Protocol):
    """Jobs that are over, so that no master runs one again.  Flink: ``JobResultStore``."""

    def put(self, details: JobDetails) -> None:
        """Durable when it returns; before anything of the job is cleaned up."""

    def get(self, job_id: JobId) -> JobDetails | None: ...

    def all(self) -> Sequence[JobDetails]:
        """Oldest first, as many as ``jobstore.max-capacity``."""


class JobKeyStore(Protocol):
    """At most one live job has a key."""

    def claim(self, key: str, job_id: JobId) -> JobId:
        """Take the key for the job unless another one has it; returns who has it now."""

    def release(self, key: str, job_id: JobId) -> None:
        """Give it back, if it is the job's.  Idempotent."""


class CheckpointStore(Protocol):
    """Completed checkpoints and savepoints of one job, and the counter of their ids.

    Bodies (``_metadata``) are written before pointers and deleted after them.  A write by a master
    that was deposed meanwhile raises :class:`yarnflow.errors.LeadershipLost` and changes nothing.
    """

    def next_id(self) -> int:
        """A number above all that were given before, by any master."""

    def add(self, checkpoint: CheckpointInfo, metadata: bytes) -> CheckpointInfo:
        """Write a completed one; returns it with its ``external_path``.  Idempotent by id.

        The metadata of a savepoint stands in the savepoint already; only its record is kept.
        """

    def remove(self, checkpoint_id: int) -> None:
        """Delete record and body of a checkpoint, the record only of a savepoint.  Idempotent."""

    def all(self) -> Sequence[CheckpointInfo]:
        """By id; those whose body is unreadable are left out."""

    def discard_all(self) -> None:
        """The job is over and nothing is retained: also the job's checkpoint directory."""

    def close_job(self) -> None:
        """The job is over and its state is retained: pointers and counter go, bodies stay."""


@dataclass(frozen=True, slots=True)
class DriverLeaseInfo:
    """Who may write a job's checkpoint directory; content of the lease's znode."""

    job_id: JobId
    driver_id: DriverId
    #: Thrift address of the driver; empty before it serves
    address: str
    host: str
    pid: int
    #: of the master that launched it
    epoch: int
    #: deployment it runs; 0 = none yet
    attempt: int = 0
    extra: dict[str, str] = field(default_factory=dict)


class DriverLeases(Protocol):
    """Who may write the checkpoint directories, as the leader sees it."""

    def holder(self, job_id: JobId) -> DriverLeaseInfo | None:
        """The driver that has the lease now."""

    def watch(self, job_id: JobId, listener: Callable[[DriverLeaseInfo | None], None]) -> None:
        """Call ``listener`` with the present holder and with each change, until :meth:`unwatch`."""

    def unwatch(self, job_id: JobId) -> None: ...

    def revoke(self, job_id: JobId, driver_id: DriverId) -> None:
        """Tell the driver, and the master whose supervisor owns it, that it must end.  Idempotent."""

    def on_revoked(self, listener: Callable[[DriverId], None]) -> None:
        """In every master: kill this driver if it is one of ours."""


class DriverLease(Protocol):
    """The right to write one job's checkpoint directory, as its driver sees it."""

    def acquire(self, info: DriverLeaseInfo, timeout_ms: int) -> None:
        """Take it, waiting for an earlier holder's to end.

        Raises
        ------
        LeaseLost
            It was not to be had in time, or was taken from this driver.
        """

    def update(self, info: DriverLeaseInfo) -> None:
        """Say more about the holder (address, attempt)."""

    def check(self) -> None:
        """Return while nobody else can have the lease; quick, without a call.

        Raises
        ------
        LeaseLost
            It may have expired: write nothing.
        """

    def on_lost(self, listener: Callable[[str], None]) -> None:
        """Call ``listener(reason)`` once, before anybody else can have it."""

    def release(self) -> None:
        """Give it back at once.  Idempotent."""


class FreeLease:
    """The lease of a cluster without high availability: nobody else could take it."""

    def acquire(self, info: DriverLeaseInfo, timeout_ms: int) -> None:
        pass

    def update(self, info: DriverLeaseInfo) -> None:
        pass

    def check(self) -> None:
        pass

    def on_lost(self, listener: Callable[[str], None]) -> None:
        pass

    def release(self) -> None:
        pass


class ClusterEnd(Protocol):
    """That a cluster has done its work, told to all its masters."""

    def declare(self, result: ClusterResult) -> None:
        """As leader: the cluster is over."""

    def on_ended(self, listener: Callable[[ClusterResult], None]) -> None:
        """Call ``listener`` once when it is, also when it was before."""

    def remove_cluster(self) -> None:
        """Delete everything the cluster has in ZooKeeper; the last master does it."""


class CollectedParts(Protocol):
    """Files of one job with elements for the program; see :mod:`yarnflow.core.collect.parts`."""

    def names(self) -> Sequence[str]:
        """Of all parts there are, also of such whose micro-batch is not committed."""

    def committed(self) -> int:
        """The last committed micro-batch of the query that writes them; -1 = none."""

    def read(self, name: str) -> bytes:
        """A part's content, with its seal.  Raises FileMissing."""

    def delete(self, name: str) -> None:
        """Idempotent."""

    def delete_all(self) -> None:
        """The job is over.  Idempotent."""


class LatestStates(Protocol):
    """The newest retained state of each job key, in files beside the checkpoints."""

    def read(self, job_key: str) -> LatestState | None:
        """None when nothing is retained, or the file cannot be understood."""

    def write(self, state: LatestState) -> None: ...

    def remove(self, job_key: str, job_id: JobId) -> None:
        """Forget it, if it is of this job.  Idempotent."""


class JobStores(Protocol):
    """What Dispatcher and JobMasters keep beyond their own lives.

    Without high availability it is kept as long as the process lives, except for checkpoints.
    """

    @property
    def highly_available(self) -> bool:
        """Another master may take over."""

    @property
    def job_graphs(self) -> JobGraphStore: ...

    @property
    def results(self) -> JobResultStore: ...

    @property
    def job_keys(self) -> JobKeyStore: ...

    @property
    def leases(self) -> DriverLeases: ...

    def checkpoints(self, job_id: JobId, directory: str) -> CheckpointStore:
        """Those of one job, whose own directory (a URI) is given."""

    def collected(self, directory: str) -> CollectedParts:
        """Those in a job's own directory (a URI)."""

    def latest_states(self, root: str) -> LatestStates:
        """Below one ``execution.checkpointing.dir`` (a URI)."""


@dataclass(frozen=True, slots=True)
class LatestState:
    """The newest retained state under a job key; a small file beside the checkpoints."""

    job_key: str
    job_id: JobId
    job_name: str
    #: name of the job's status when the record was written
    status: str
    #: newest checkpoint's directory (a URI)
    path: str
    checkpoint_id: int
    written_ms: int
    extra: dict[str, str] = field(default_factory=dict)
