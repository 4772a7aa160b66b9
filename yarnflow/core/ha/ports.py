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
from typing import Final, Protocol

from yarnflow.core.checkpoint.messages import CheckpointInfo
from yarnflow.core.cluster_result import ClusterResult
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.messages import Fence, JobDetails, JobSubmission, LeaderInfo
from yarnflow.core.states import JobStatus

#: status of a job that has not ended, as far as its files say
LOST: Final = "LOST"
#: of one whose files do not say: an earlier version has written them
UNMARKED: Final = "UNMARKED"


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


@dataclass(frozen=True, slots=True)
class Leadership:
    """The masters of a cluster, as the one that leads knows them."""

    leader: LeaderInfo
    #: when it was granted
    since_ms: int
    #: the one that leads next first
    standbys: tuple[MasterInfo, ...] = ()


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

    def get(self, job_id: JobId) -> JobSubmission | None:
        """None when there is no such job, or what is stored of it cannot be read."""

    def job_ids(self) -> Sequence[JobId]:
        """In order of submission, those that cannot be read included."""

    def forgotten(self) -> Sequence[JobId]:
        """Jobs that are stored, and of which nothing else is known: there was more once."""

    def replace(self, submission: JobSubmission) -> None:
        """Store a job anew that could not be read; does nothing when there is none of its id."""

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

    def has(self, job_id: JobId) -> bool:
        """Whether a job is over, also when how it ended cannot be read."""

    def all(self) -> Sequence[JobDetails]:
        """Oldest first, as many as ``jobstore.max-capacity``."""


class JobKeyStore(Protocol):
    """At most one live job has a key."""

    def claim(self, key: str, job_id: JobId) -> JobId:
        """Take the key for the job unless another one has it; returns who has it now."""

    def release(self, key: str, job_id: JobId) -> None:
        """Give it back, if it is the job's.  Idempotent."""

    def key_of(self, job_id: JobId) -> str:
        """The key a job has; empty = none."""


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

    def close_job(self, status: JobStatus) -> None:
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


class StateOwner(Protocol):
    """Whose a job's checkpoint directory is, as the job's driver sees it; see also :class:`DriverLease`.

    The lease is between drivers of one job, this is between jobs, also of several clusters.
    """

    def hold(self) -> None:
        """Before the job writes there.  Idempotent.

        Raises
        ------
        StateInUse
            Another job has claimed it.
        """

    def describe(self, manifest: bytes) -> None:
        """Before the program starts: what others need to go on from the job while it has no checkpoint.

        Parameters
        ----------
        manifest : bytes
            Of a checkpoint, see :mod:`yarnflow.core.checkpoint.manifest`, without queries.
        """

    def claim(self, path: str, job_key: str) -> None:
        """Before the state at a path (a URI) is moved.  Idempotent.

        Parameters
        ----------
        job_key : str
            Of the job that claims: a job of the same key that began before it and that no driver runs is
            lost, as a key has one live job.  Empty = it has none.

        Raises
        ------
        StateInUse
            The job that it is of may still run, or another one has claimed it.
        """

    def give_back(self, path: str) -> None:
        """Undo :meth:`claim`, as the job does not start; nothing once the state is in its place."""


class NoStateOwner:
    """For tests, and where nobody else could be: everything is this job's."""

    def hold(self) -> None:
        pass

    def describe(self, manifest: bytes) -> None:
        pass

    def claim(self, path: str, job_key: str) -> None:
        pass

    def give_back(self, path: str) -> None:
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


@dataclass(frozen=True, slots=True)
class LostJob:
    """A job that was lost, or FAILED, before its first checkpoint: what its directory tells of it."""

    job_id: JobId
    #: its checkpoint directory (a URI)
    directory: str
    #: query → the last batch that it began; sinks may have it
    batches: tuple[tuple[str, int], ...] = ()
    #: the state (a path) to go on from: the one it was started from if it has gone no further, else a
    #: checkpoint of what it left; empty = there is none
    path: str = ""
    #: digest of what it ran; empty = not known
    program: str = ""


class LatestStates(Protocol):
    """The newest retained state of each job key, in files beside the checkpoints.

    What a job writes never hides what a later job of the key has written, and what a deposed master
    writes nothing of the masters after it.
    """

    def begin(self, job_key: str, job_id: JobId, program: str = "") -> None:
        """Before a job runs: it comes after all jobs of the key that have begun.  Idempotent.

        ``program`` is the digest of what it runs; empty = not known.
        """

    def adopt(self, earlier_key: str, job_key: str) -> bool:
        """Take over what an earlier version's jobs left under a key, for a program with the key ``job_key``.

        The first that asks gets it for good; False when another one has it, when there is nothing, or when
        the program has a key of its own already.
        """

    def read(self, job_key: str) -> LatestState | None:
        """What the last job of the key left that left anything; None when none has, as far as is known."""

    def lost(self, job_key: str, job_id: JobId) -> LostJob | None:
        """The job that began before this one and left more than :meth:`read` tells of.

        None when there is none, and when this job has begun already.
        """

    def write(self, state: LatestState) -> None:
        """Put down the newest state of a job, or, with an empty path, that it leaves none."""

    def disposed(self, job_key: str, path: str) -> None:
        """A user has deleted a state (a URI): nothing goes on from there.  Idempotent."""

    def has(self, path: str) -> bool:
        """Whether there is a complete checkpoint or savepoint in a directory (a URI)."""

    def has_begun(self, job_id: JobId) -> bool:
        """Whether a driver of a job has written, or was about to."""

    def left(self, job_key: str) -> Sequence[LatestState]:
        """The newest checkpoint of each job of the key as the checkpoints themselves say, newest first.

        The status of each is the one it ended with, :data:`LOST` or :data:`UNMARKED`.
        """


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

    def checkpoint_directory(self, job_id: JobId) -> str:
        """A job's own directory (a URI) as the records of its checkpoints say; empty = it has none."""

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
    #: name of the job's status when the record was written; also :data:`LOST` or :data:`UNMARKED`
    status: str
    #: newest checkpoint's directory (a URI); empty = the job leaves no state
    path: str
    checkpoint_id: int
    written_ms: int
    extra: dict[str, str] = field(default_factory=dict)
    #: digest of what the job ran; empty = not known
    program: str = ""
