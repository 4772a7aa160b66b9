"""Fakes of the stores in :mod:`yarnflow.core.ha.ports`: in memory, and failing when told to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointKind
from yarnflow.core.ha.ports import (
    CheckpointStore,
    CollectedParts,
    DriverLeaseInfo,
    DriverLeases,
    JobGraphStore,
    JobKeyStore,
    JobResultStore,
    LatestState,
    LatestStates,
    LostJob,
)
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.messages import JobDetails, JobSubmission
from yarnflow.core.states import JobStatus
from yarnflow.errors import FileMissing, YarnflowError


@dataclass
class FakeJobGraphs:
    """Submissions by id; :attr:`error` makes marks fail, :attr:`read_failures` the next calls for all ids.

    What is :attr:`unreadable` is stored and cannot be read; :attr:`lost` is what is forgotten.
    """

    unreadable: set[JobId] = field(default_factory=set)
    lost: set[JobId] = field(default_factory=set)
    stored: dict[JobId, JobSubmission] = field(default_factory=dict)
    canceled: set[JobId] = field(default_factory=set)
    error: YarnflowError | None = None
    read_failures: list[YarnflowError] = field(default_factory=list)

    def put(self, submission: JobSubmission) -> None:
        """Add to :attr:`stored`."""
        self.stored[submission.job_id] = submission

    def get(self, job_id: JobId) -> JobSubmission | None:
        """As it was put."""
        return None if job_id in self.unreadable else self.stored.get(job_id)

    def forgotten(self) -> Sequence[JobId]:
        """As :attr:`lost` says."""
        return tuple(self.lost)

    def replace(self, submission: JobSubmission) -> None:
        """It can be read again."""
        if self.error is not None:
            raise self.error
        if submission.job_id in self.stored:
            self.stored[submission.job_id] = submission
            self.unreadable.discard(submission.job_id)

    def job_ids(self) -> Sequence[JobId]:
        """In order of submission."""
        if self.read_failures:
            raise self.read_failures.pop(0)
        return tuple(self.stored)

    def mark_canceled(self, job_id: JobId) -> None:
        """Add to :attr:`canceled`."""
        if self.error is not None:
            raise self.error
        self.canceled.add(job_id)

    def is_canceled(self, job_id: JobId) -> bool:
        """As it was marked."""
        return job_id in self.canceled

    def remove(self, job_id: JobId) -> None:
        """Drop the job and its mark."""
        self.stored.pop(job_id, None)
        self.canceled.discard(job_id)


@dataclass
class FakeJobResults:
    """Results by id; :attr:`error` makes writes fail."""

    stored: dict[JobId, JobDetails] = field(default_factory=dict)
    error: YarnflowError | None = None

    def put(self, details: JobDetails) -> None:
        """Add to :attr:`stored`."""
        if self.error is not None:
            raise self.error
        self.stored[details.overview.job_id] = details

    def get(self, job_id: JobId) -> JobDetails | None:
        """As it was put."""
        return self.stored.get(job_id)

    def has(self, job_id: JobId) -> bool:
        """Whether it was put."""
        return job_id in self.stored

    def all(self) -> Sequence[JobDetails]:
        """Oldest first."""
        return tuple(self.stored.values())


@dataclass
class FakeJobKeys:
    """Owners by key."""

    owners: dict[str, JobId] = field(default_factory=dict)

    def claim(self, key: str, job_id: JobId) -> JobId:
        """The first job that asked has it."""
        return self.owners.setdefault(key, job_id)

    def release(self, key: str, job_id: JobId) -> None:
        """Drop it if it is the job's."""
        if self.owners.get(key) == job_id:
            del self.owners[key]

    def key_of(self, job_id: JobId) -> str:
        """The key a job has."""
        return next((key for key, owner in self.owners.items() if owner == job_id), "")


@dataclass
class FakeCheckpoints:
    """Records of one job; :attr:`log` has every change in order, :attr:`error` makes calls fail."""

    directory: str
    last_id: int = 0
    records: dict[int, CheckpointInfo] = field(default_factory=dict)
    metadata: dict[int, bytes] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    error: YarnflowError | None = None

    def next_id(self) -> int:
        """The last one and one."""
        self._fail()
        self.last_id += 1
        return self.last_id

    def add(self, checkpoint: CheckpointInfo, metadata: bytes) -> CheckpointInfo:
        """Add to :attr:`records`; a checkpoint gets a path below :attr:`directory`."""
        self._fail()
        if checkpoint.kind is CheckpointKind.CHECKPOINT:
            checkpoint = replace(
                checkpoint, external_path=f"{self.directory}/chk-{checkpoint.checkpoint_id}"
            )
        self.records[checkpoint.checkpoint_id] = checkpoint
        self.metadata[checkpoint.checkpoint_id] = metadata
        self.log.append(f"add {checkpoint.checkpoint_id}")
        return checkpoint

    def remove(self, checkpoint_id: int) -> None:
        """Drop the record."""
        self._fail()
        self.records.pop(checkpoint_id, None)
        self.log.append(f"remove {checkpoint_id}")

    def all(self) -> Sequence[CheckpointInfo]:
        """By id."""
        self._fail()
        return tuple(self.records[number] for number in sorted(self.records))

    def discard_all(self) -> None:
        """Drop all records."""
        self._fail()
        self.records.clear()
        self.log.append("discard_all")

    def close_job(self, status: JobStatus) -> None:
        """Only note it in :attr:`log`."""
        self._fail()
        self.log.append(f"close_job {status.value}")

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


@dataclass
class FakeLeases:
    """Holders of leases; :meth:`hold` and :meth:`expire` act for drivers."""

    holders: dict[JobId, DriverLeaseInfo] = field(default_factory=dict)
    revoked: list[DriverId] = field(default_factory=list)
    error: YarnflowError | None = None
    _watchers: dict[JobId, Callable[[DriverLeaseInfo | None], None]] = field(default_factory=dict)

    def holder(self, job_id: JobId) -> DriverLeaseInfo | None:
        """As :meth:`hold` said."""
        self._fail()
        return self.holders.get(job_id)

    def watch(self, job_id: JobId, listener: Callable[[DriverLeaseInfo | None], None]) -> None:
        """Call ``listener`` now, with each :meth:`hold` and with :meth:`expire`."""
        self._fail()
        self._watchers[job_id] = listener
        listener(self.holders.get(job_id))

    def unwatch(self, job_id: JobId) -> None:
        """Call the job's listener no more."""
        self._watchers.pop(job_id, None)

    def revoke(self, job_id: JobId, driver_id: DriverId) -> None:
        """Add to :attr:`revoked`; that the lease expires is for the test to say."""
        self._fail()
        self.revoked.append(driver_id)

    def on_revoked(self, listener: Callable[[DriverId], None]) -> None:
        """Revocations are not told."""

    def hold(self, info: DriverLeaseInfo) -> None:
        """A driver takes the lease, or says more about itself."""
        self.holders[info.job_id] = info
        self._tell(info.job_id)

    def expire(self, job_id: JobId) -> None:
        """The lease is nobody's any more."""
        del self.holders[job_id]
        self._tell(job_id)

    def _tell(self, job_id: JobId) -> None:
        if job_id in self._watchers:
            self._watchers[job_id](self.holders.get(job_id))

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


@dataclass
class FakeCollectedParts:
    """Parts by name; :attr:`last_committed` says how far the query is."""

    contents: dict[str, bytes] = field(default_factory=dict)
    last_committed: int = -1
    error: YarnflowError | None = None

    def names(self) -> Sequence[str]:
        """In order."""
        if self.error is not None:
            raise self.error
        return sorted(self.contents)

    def committed(self) -> int:
        """Answer :attr:`last_committed`."""
        return self.last_committed

    def read(self, name: str) -> bytes:
        """As it was put into :attr:`contents`."""
        if name not in self.contents:
            raise FileMissing(f"no part {name}")
        return self.contents[name]

    def delete(self, name: str) -> None:
        """Drop the part."""
        self.contents.pop(name, None)

    def delete_all(self) -> None:
        """Drop all of them."""
        self.contents.clear()


@dataclass
class FakeLatestStates:
    """States by job key; :attr:`found` are checkpoints that no state names, :attr:`gone` lost paths."""

    states: dict[str, LatestState] = field(default_factory=dict)
    #: jobs of each key in the order in which they began
    jobs: dict[str, list[JobId]] = field(default_factory=dict)
    #: key → the one whose jobs it is for
    owners: dict[str, str] = field(default_factory=dict)
    found: list[LatestState] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    #: whose drivers have written
    begun: set[JobId] = field(default_factory=set)
    #: where they were asked for
    roots: list[str] = field(default_factory=list)
    #: what :meth:`lost` answers
    lost_job: LostJob | None = None
    error: YarnflowError | None = None

    def begin(self, job_key: str, job_id: JobId, program: str = "") -> None:
        """Add to :attr:`jobs`."""
        self._fail()
        if program:
            self.owners.setdefault(job_key, job_key)
        jobs = self.jobs.setdefault(job_key, [])
        if job_id not in jobs:
            jobs.append(job_id)

    def adopt(self, earlier_key: str, job_key: str) -> bool:
        """Have the key owned by the other one, if nobody owns it and that one is not there itself."""
        self._fail()
        known = {*self.states, *self.jobs}
        if earlier_key not in known or job_key in known:
            return False
        return self.owners.setdefault(earlier_key, job_key) == job_key

    def read(self, job_key: str) -> LatestState | None:
        """As it was written."""
        self._fail()
        return self.states.get(job_key)

    def lost(self, job_key: str, job_id: JobId) -> LostJob | None:
        """As :attr:`lost_job` says."""
        self._fail()
        return self.lost_job

    def write(self, state: LatestState) -> None:
        """Replace the state of its key, unless that is a later job's."""
        self.begin(state.job_key, state.job_id)
        known, jobs = self.states.get(state.job_key), self.jobs[state.job_key]
        if known is None or jobs.index(state.job_id) >= jobs.index(known.job_id):
            self.states[state.job_key] = state

    def disposed(self, job_key: str, path: str) -> None:
        """The state of the key has no path any more, if it was this one."""
        state = self.states.get(job_key)
        if state is not None and state.path == path:
            self.states[job_key] = replace(state, path="", checkpoint_id=0)

    def has(self, path: str) -> bool:
        """All but what is :attr:`gone`."""
        self._fail()
        return path not in self.gone

    def has_begun(self, job_id: JobId) -> bool:
        """Whether it is :attr:`begun`."""
        self._fail()
        return job_id in self.begun

    def left(self, job_key: str) -> Sequence[LatestState]:
        """As :attr:`found` says."""
        self._fail()
        return [state for state in self.found if state.job_key == job_key]

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error


@dataclass
class FakeJobStores:
    """All of them; what a test puts in survives the JobMaster it is given to."""

    highly_available: bool = False
    graphs: FakeJobGraphs = field(default_factory=FakeJobGraphs)
    ended: FakeJobResults = field(default_factory=FakeJobResults)
    keys: FakeJobKeys = field(default_factory=FakeJobKeys)
    lease_table: FakeLeases = field(default_factory=FakeLeases)
    latest: FakeLatestStates = field(default_factory=FakeLatestStates)
    by_job: dict[JobId, FakeCheckpoints] = field(default_factory=dict)
    collected_parts: FakeCollectedParts = field(default_factory=FakeCollectedParts)

    @property
    def job_graphs(self) -> JobGraphStore:
        """All jobs."""
        return self.graphs

    @property
    def results(self) -> JobResultStore:
        """Those that are over."""
        return self.ended

    @property
    def job_keys(self) -> JobKeyStore:
        """Of live jobs."""
        return self.keys

    @property
    def leases(self) -> DriverLeases:
        """Of drivers."""
        return self.lease_table

    def checkpoints(self, job_id: JobId, directory: str) -> CheckpointStore:
        """Made when missing."""
        return self.by_job.setdefault(job_id, FakeCheckpoints(directory))

    def checkpoint_directory(self, job_id: JobId) -> str:
        """Of the job's checkpoints, if it has some."""
        known = self.by_job.get(job_id)
        return known.directory if known is not None and known.records else ""

    def collected(self, directory: str) -> CollectedParts:
        """The same for every job."""
        return self.collected_parts

    def latest_states(self, root: str) -> LatestStates:
        """The same for every root, which is added to its :attr:`~FakeLatestStates.roots`."""
        self.latest.roots.append(root)
        return self.latest
