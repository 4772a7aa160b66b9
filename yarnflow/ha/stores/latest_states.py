"""The newest retained state of each job key, in small files beside the checkpoints.

A key has a directory.  Each job of the key makes a numbered file there before it runs, created only if
nobody has the number: so the order of the jobs is fixed, whatever they write later.  What a job knows of
its newest state is a file of its own for each checkpoint, never written again, and named by the job's
number, the epoch of the master that wrote it and the number of the checkpoint.  The highest name is
read.  So a master that was deposed, and a job that was followed by another, only write files that nobody
reads.  The checkpoints themselves are the truth: what is in the job's directory and in no file is found
(:mod:`yarnflow.ha.stores.left_states`).
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from yarnflow.core.files import FileStatus, FileSystems
from yarnflow.core.ha.ports import LatestState, LostJob
from yarnflow.core.ha.program_keys import becomes_owner, mark_owner
from yarnflow.core.ids import JobId, is_job_id
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.states import GLOBALLY_TERMINAL
from yarnflow.errors import FileMissing, RpcProtocolError
from yarnflow.ha.stores.left_states import LeftStates, of_this_version
from yarnflow.ha.stores.lost_jobs import LostJobs

T = TypeVar("T")

logger = logging.getLogger(__name__)

_READABLE: Final = 80
_JOB: Final = re.compile(r"(\d{10})\.job")
#: what there is of a job beside its states
_OF_JOB: Final = re.compile(r"(\d{10})\.(?:job|program)")
#: beside the file of a job: the digest of what it runs
_PROGRAM: Final = ".program"
_RECORD: Final = re.compile(r"(\d{10})-(\d{19})-([01])-(\d{19})\.json")
_OVER: Final = frozenset(status.value for status in GLOBALLY_TERMINAL)
#: files that a writer which was killed left half-written
_TEMPORARY: Final = ".tmp"
_DAY_MS: Final = 86_400_000
#: how long a job that was followed by another may still come back
_JOB_KEPT_MS: Final = 90 * _DAY_MS


@dataclass(frozen=True, slots=True, order=True)
class _Order:
    """Place of a record among those of its key; the newest is the highest."""

    #: number of the job among those of the key
    job: int
    #: of the master that wrote it
    epoch: int
    #: the job is over: nothing of this epoch comes later
    over: bool
    checkpoint_id: int

    @property
    def name(self) -> str:
        return f"{self.job:010d}-{self.epoch:019d}-{self.over:d}-{self.checkpoint_id:019d}.json"

    @staticmethod
    def of(name: str) -> _Order | None:
        found = _RECORD.fullmatch(name)
        return found and _Order(int(found[1]), int(found[2]), found[3] == "1", int(found[4]))


class FileLatestStates:
    """Implements :class:`yarnflow.core.ha.ports.LatestStates`.

    Parameters
    ----------
    fs_of : callable
        Opens the file system of a URI.
    root : str
        ``execution.checkpointing.dir`` (a URI).
    epoch : callable
        Of the master that writes; 1 where there is only one.
    """

    def __init__(self, fs_of: FileSystems, root: str, epoch: Callable[[], int] = lambda: 1) -> None:
        self._fs_of = fs_of
        self._directory = f"{root.rstrip('/')}/job-keys"
        self._epoch = epoch
        self._left = LeftStates(fs_of, root)
        self._lost = LostJobs(fs_of, root)
        #: (key, job) → its number
        self._numbers: dict[tuple[str, JobId], int] = {}
        #: directory → what was written there last, so that it is not listed each time
        self._last: dict[str, _Order] = {}

    def begin(self, job_key: str, job_id: JobId, program: str = "") -> None:
        """Have the job come after all jobs of the key that began before.  Idempotent."""
        fs, path = self._fs_of(self._of_key(job_key))
        # a job of an earlier version, which a master of this one runs, does not say what it runs: its program
        # still finds it
        if program:
            fs.make_directory(path)
            mark_owner(fs, path, job_key)
        number = self._number(job_key, job_id)
        if program:
            fs.create(f"{path}/{number:010d}{_PROGRAM}", program.encode())

    def adopt(self, earlier_key: str, job_key: str) -> bool:
        """Take over what an earlier version's jobs left under a key, for a program with another one."""
        fs, path = self._fs_of(self._of_key(job_key))
        if fs.list(path):
            return False
        uri = self._of_key(earlier_key)
        fs, path = self._fs_of(uri)
        if not fs.list(path):
            fs, path = self._fs_of(f"{uri}.json")
            if fs.status(path) is None:
                return False
            fs, path = self._fs_of(uri)
            fs.make_directory(path)
        return becomes_owner(fs, path, job_key)

    def read(self, job_key: str) -> LatestState | None:
        """The newest state that the last job of the key left; None when no job of it left anything.

        What is said in files that cannot be understood is looked for in the job's directory.
        """
        return self._until_read(lambda: self._read(job_key))

    def lost(self, job_key: str, job_id: JobId) -> LostJob | None:
        """The job that began before this one and left more than its checkpoints tell, as it has none."""
        if self._lost.is_begun(job_id):
            return None
        number = self._number(job_key, job_id)
        found = self._until_read(lambda: self._newest(job_key))
        order = _Order.of(found[0].rpartition("/")[2]) if found is not None else None
        for other_number, other in self._jobs(job_key, above=order.job if order else 0):
            if other_number >= number or not other:
                continue
            if self._left.newest_of(other) is not None:
                return None
            lost = self._lost.find(other)
            if lost is not None:
                return replace(lost, program=self._program(job_key, other_number))
        return None

    def write(self, state: LatestState) -> None:
        """Put down the newest state of a job; older files of the key go."""
        number = self._number(state.job_key, state.job_id)
        order = _Order(number, self._epoch(), state.status in _OVER, state.checkpoint_id)
        uri = self._of_key(state.job_key)
        fs, path = self._fs_of(uri)
        fs.write(f"{path}/{order.name}", to_json(state).encode())
        last, self._last[uri] = self._last.get(uri), order
        if last is not None:
            if last < order:
                fs.delete(f"{path}/{last.name}")
            return
        for entry in fs.list(path):
            if _is_outdated(entry, order, state.written_ms):
                fs.delete(entry.path)
        # earlier versions had one file for a key
        fs, path = self._fs_of(f"{uri}.json")
        fs.delete(path)

    def began_before(self, job_key: str, earlier: JobId, later: JobId) -> bool:
        """Whether both jobs have begun under the key, in this order."""
        jobs = [job_id for _number, job_id in self._jobs(job_key)]
        return earlier != later and later in jobs and earlier in jobs[jobs.index(later) :]

    def disposed(self, job_key: str, path: str) -> None:
        """A state was deleted by a user: what its job has besides is the newest one now, if it has any."""
        found = self._newest(job_key)
        if found is None or found[1].path.rstrip("/") != path.rstrip("/"):
            return
        where, state = found
        left = self._left.newest_beside(path)
        newest, number = (left.path, left.checkpoint_id) if left is not None else ("", 0)
        state = replace(state, path=newest, checkpoint_id=number)
        fs, path = self._fs_of(where)
        fs.write(path, to_json(state).encode())

    def has(self, path: str) -> bool:
        """Whether there is a checkpoint or savepoint in a directory (a URI)."""
        return self._left.has(path)

    def has_begun(self, job_id: JobId) -> bool:
        """Whether a driver of a job has written, or was about to."""
        return self._lost.is_begun(job_id)

    def left(self, job_key: str) -> Sequence[LatestState]:
        """The newest checkpoint of each job of the key, read from the checkpoints; looks at every job."""
        left = self._left.of_key(job_key)
        jobs = {job_id for _number, job_id in self._jobs(job_key)}
        # which jobs began, and how they ended, was put down and is lost
        is_damaged = "" in jobs or self._has_records(job_key)
        return [of_this_version(s) if is_damaged or s.job_id in jobs else s for s in left]

    # --- reading ---

    def _until_read(self, read: Callable[[], T]) -> T:
        while True:
            try:
                return read()
            except _Replaced:
                continue  # by a newer one, while it was read

    def _read(self, job_key: str) -> LatestState | None:
        found = self._newest(job_key)
        state = None if found is None else found[1]
        order = _Order.of(found[0].rpartition("/")[2]) if found is not None else None
        # jobs that have begun later and put down nothing, or whose files cannot be understood
        for number, job_id in self._jobs(job_key, above=order.job if order else 0):
            left = self._left.newest_of(job_id)
            if left is not None:
                return replace(of_this_version(left), program=self._program(job_key, number))
        if state is None or state.status in _OVER or not state.path:
            return state
        left = self._left.newest_beside(state.path)
        if left is None:
            return state
        # its marker tells of an end that could not be put down
        status = left.status if left.status in _OVER else state.status
        return replace(state, path=left.path, checkpoint_id=left.checkpoint_id, status=status)

    def _newest(self, job_key: str) -> tuple[str, LatestState] | None:
        """URI and content of the highest file that can be understood."""
        uri = self._of_key(job_key)
        fs, path = self._fs_of(uri)
        orders = (_Order.of(entry.name) for entry in fs.list(path))
        for order in sorted((order for order in orders if order is not None), reverse=True):
            state = self._state(f"{uri}/{order.name}")
            if state is not None:
                return f"{uri}/{order.name}", state
        try:
            state = self._state(f"{uri}.json")
        except _Replaced:
            return None
        return None if state is None else (f"{uri}.json", state)

    def _has_records(self, job_key: str) -> bool:
        """Whether anything was put down of the key's states, also what cannot be understood."""
        uri = self._of_key(job_key)
        fs, path = self._fs_of(uri)
        if any(_Order.of(entry.name) is not None for entry in fs.list(path)):
            return True
        fs, path = self._fs_of(f"{uri}.json")
        return fs.status(path) is not None

    def _state(self, uri: str) -> LatestState | None:
        fs, path = self._fs_of(uri)
        try:
            return from_json(LatestState, fs.read(path).decode())
        except FileMissing:
            raise _Replaced from None
        except (RpcProtocolError, UnicodeDecodeError) as error:
            logger.error("%s cannot be understood and is passed over: %s", path, error)
            return None

    # --- jobs of a key ---

    def _number(self, job_key: str, job_id: JobId) -> int:
        known = self._numbers.get((job_key, job_id))
        if known is not None:
            return known
        fs, path = self._fs_of(self._of_key(job_key))
        fs.make_directory(path)
        while True:
            own = [number for number, other in self._jobs(job_key) if other == job_id]
            if own:
                break
            orders = (_Order.of(entry.name) for entry in fs.list(path))
            taken = [number for number, _other in self._jobs(job_key)]
            taken += [order.job for order in orders if order is not None]
            number = max(taken, default=0) + 1
            if fs.create(f"{path}/{number:010d}.job", job_id.encode()):
                own = [number]
                break
        self._numbers[job_key, job_id] = own[-1]
        return own[-1]

    def _program(self, job_key: str, number: int) -> str:
        """Return the digest of what a job ran; empty = not known."""
        fs, path = self._fs_of(self._of_key(job_key))
        try:
            return fs.read(f"{path}/{number:010d}{_PROGRAM}").decode(errors="replace")
        except FileMissing:
            return ""

    def _jobs(self, job_key: str, above: int = 0) -> list[tuple[int, JobId]]:
        """Numbers and ids of jobs, the last one first."""
        fs, path = self._fs_of(self._of_key(job_key))
        jobs = []
        for entry in reversed(fs.list(path)):
            found = _JOB.fullmatch(entry.name)
            if found is None or int(found[1]) <= above:
                continue
            try:
                job_id = fs.read(entry.path).decode(errors="replace")
            except FileMissing:
                continue  # a later one has put down a state
            jobs.append((int(found[1]), JobId(job_id if is_job_id(job_id) else "")))
        return jobs

    def _of_key(self, job_key: str) -> str:
        # distinct keys have distinct names, and people recognise theirs
        readable = re.sub(r"[^A-Za-z0-9_-]", "_", job_key)[:_READABLE]
        return f"{self._directory}/{readable}-{hashlib.sha256(job_key.encode()).hexdigest()[:12]}"


class _Replaced(Exception):
    """A file that was listed is gone."""


def _is_outdated(entry: FileStatus, order: _Order, now_ms: int) -> bool:
    """Whether nobody needs a file any more once the record ``order`` is written."""
    job, record = _OF_JOB.fullmatch(entry.name), _Order.of(entry.name)
    if job is not None:
        # without it a job that is taken over late would come after those that followed it
        return int(job[1]) < order.job and entry.modified_ms < now_ms - _JOB_KEPT_MS
    if record is not None:
        return record < order
    return entry.name.endswith(_TEMPORARY) and entry.modified_ms < now_ms - _DAY_MS
