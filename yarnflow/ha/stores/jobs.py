"""Jobs, their results and their keys in ZooKeeper.

Flink counterparts: ``DefaultExecutionPlanStore``, ``FileSystemJobResultStore``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeVar
from urllib.parse import quote, unquote

from kazoo.client import TransactionRequest
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.messages import Fence, JobDetails, JobSubmission
from yarnflow.errors import RpcProtocolError
from yarnflow.ha.client import ZooKeeper
from yarnflow.ha.leases import LEASE
from yarnflow.ha.stores.bodies import Bodies

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: name of the node below the job's that says that somebody wants its end
CANCELED: Final = "canceled"


def _read(cls: type[T], content: bytes | None, what: str) -> T | None:
    if content is None:
        return None
    try:
        return from_json(cls, content.decode())
    except (RpcProtocolError, UnicodeDecodeError) as error:
        logger.error("%s cannot be understood and is passed over: %s", what, error)
        return None


class ZooKeeperJobGraphs:
    """Implements :class:`yarnflow.core.ha.ports.JobGraphStore`."""

    def __init__(self, zookeeper: ZooKeeper, bodies: Bodies, fence: Callable[[], Fence]) -> None:
        self._zookeeper = zookeeper
        self._bodies = bodies
        self._fence = fence

    def put(self, submission: JobSubmission) -> None:
        self._bodies.put(submission.job_id, to_json(submission).encode())

    def get(self, job_id: JobId) -> JobSubmission | None:
        """The job, None when it is not (any longer) known."""
        return _read(JobSubmission, self._bodies.get(job_id), f"job {job_id}")

    def forgotten(self) -> Sequence[JobId]:
        """Jobs that are stored without a pointer to them."""
        return [JobId(name) for name in self._bodies.without_pointer()]

    def replace(self, submission: JobSubmission) -> None:
        """Store a job anew that could not be read."""
        self._bodies.replace(submission.job_id, to_json(submission).encode())

    def job_ids(self) -> Sequence[JobId]:
        return [JobId(name) for name in self._bodies.names()]

    def mark_canceled(self, job_id: JobId) -> None:
        """Have the next leader cancel the job, should this one not come to it."""
        pointer = self._bodies.node(job_id)
        node = self._zookeeper.path("jobs", job_id, CANCELED)

        def fill(transaction: TransactionRequest) -> None:
            # a job that has just ended must leave nothing behind; any version
            transaction.check(pointer, -1)
            transaction.create(node, b"")

        while self._bodies.has(job_id):
            self._zookeeper.ensure("jobs", job_id)
            try:
                self._zookeeper.commit(f"cancel job {job_id}", self._fence().epoch, fill)
                return
            except NodeExistsError:
                return
            except NoNodeError:
                continue  # it has just ended, or a driver that left has taken the job's node along
        self._sweep()

    def is_canceled(self, job_id: JobId) -> bool:
        """Whether somebody wanted the job's end under this leader or an earlier one."""
        return self._zookeeper.get(self._zookeeper.path("jobs", job_id, CANCELED)) is not None

    def remove(self, job_id: JobId) -> None:
        """Forget a job, its records and counters included.

        A driver that is still about to end keeps its lease until then, and takes the job's node with
        it; where it could not, that is done here when the next job is removed.
        """
        self._zookeeper.assert_leads(self._fence().epoch)
        jobs = self._zookeeper.path("jobs")
        for name in self._zookeeper.children(f"{jobs}/{job_id}"):
            if name != LEASE:
                self._zookeeper.delete_tree(f"{jobs}/{job_id}/{name}")
        # last: by it the next leader knows that there is something to clear away
        self._bodies.remove(job_id)
        # what was marked in between
        self._zookeeper.delete(f"{jobs}/{job_id}/{CANCELED}")
        self._sweep()

    def _sweep(self) -> None:
        """Delete the nodes of jobs that are over, but for those whose driver is about to end."""
        jobs = self._zookeeper.path("jobs")
        for name in self._zookeeper.children(jobs):
            if not self._bodies.has(name):
                self._zookeeper.delete(f"{jobs}/{name}")


class ZooKeeperResults:
    """Implements :class:`yarnflow.core.ha.ports.JobResultStore`.

    Parameters
    ----------
    capacity : int
        Results beyond this are forgotten, the oldest first.
    """

    def __init__(self, bodies: Bodies, capacity: int = 100) -> None:
        self._bodies = bodies
        self._capacity = capacity

    def put(self, details: JobDetails) -> None:
        """Keep how a job ended; the first word stands."""
        self._bodies.put(details.overview.job_id, to_json(details).encode())
        for name in self._bodies.names()[: -self._capacity]:
            self._bodies.remove(name)

    def get(self, job_id: JobId) -> JobDetails | None:
        """How a job ended; None = it has not, as far as is known."""
        return _read(JobDetails, self._bodies.get(job_id), f"the result of job {job_id}")

    def has(self, job_id: JobId) -> bool:
        """Whether a job is over."""
        return self._bodies.has(job_id)

    def all(self) -> Sequence[JobDetails]:
        found = [self.get(JobId(name)) for name in self._bodies.names()]
        return [details for details in found if details is not None]


class ZooKeeperJobKeys:
    """Implements :class:`yarnflow.core.ha.ports.JobKeyStore`."""

    def __init__(self, zookeeper: ZooKeeper, fence: Callable[[], Fence]) -> None:
        self._zookeeper = zookeeper
        self._fence = fence

    def claim(self, key: str, job_id: JobId) -> JobId:
        """Take the key unless it is taken; returns whose it is now."""
        self._zookeeper.ensure("job-keys")
        node = self._node(key)
        while True:
            try:
                self._zookeeper.commit(
                    f"claim job key {key}",
                    self._fence().epoch,
                    lambda t: t.create(node, job_id.encode()),
                )
                return job_id
            except NodeExistsError:
                found = self._zookeeper.get(node)
                if found is not None:
                    return JobId(found[0].decode())

    def release(self, key: str, job_id: JobId) -> None:
        """Give it back if it is the job's."""
        node = self._node(key)
        found = self._zookeeper.get(node)
        if found is None or found[0].decode() != job_id:
            return
        version = int(found[1].version)
        try:
            self._zookeeper.commit(
                f"release job key {key}", self._fence().epoch, lambda t: t.delete(node, version)
            )
        except (NoNodeError, BadVersionError):
            pass

    def key_of(self, job_id: JobId) -> str:
        """The key a job has."""
        for name in self._zookeeper.children(self._zookeeper.path("job-keys")):
            found = self._zookeeper.get(self._zookeeper.path("job-keys", name))
            if found is not None and found[0].decode() == job_id:
                return unquote(name)
        return ""

    def _node(self, key: str) -> str:
        # a dot alone means something in paths
        return self._zookeeper.path("job-keys", quote(key, safe="").replace(".", "%2E"))
