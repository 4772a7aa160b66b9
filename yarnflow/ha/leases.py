"""Who may write the jobs' checkpoint directories, as masters see it.

A lease is an ephemeral node of the driver's session (:mod:`yarnflow.ha.driver_lease`).  A driver
that must go may be frozen, or belong to another master's supervisor, so that is said in a node
which the driver and all masters watch.

Flink has no counterpart: there only calls are fenced, never what is written.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final

from kazoo.exceptions import NodeExistsError

from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.json_codec import from_json
from yarnflow.core.messages import Fence
from yarnflow.errors import RpcProtocolError
from yarnflow.ha.client import ZooKeeper

logger = logging.getLogger(__name__)

#: name of the node below the job's
LEASE: Final = "driver"
#: parent of one node for each driver that must end
REVOKED: Final = "revoked"
#: words about drivers that are long gone are deleted after this
_REVOKED_KEPT_MS: Final = 3_600_000


def lease_node(zookeeper: ZooKeeper, job_id: JobId) -> str:
    """The node whose session has the job's lease."""
    return zookeeper.path("jobs", job_id, LEASE)


class ZooKeeperLeases:
    """Implements :class:`yarnflow.core.ha.ports.DriverLeases`.

    Parameters
    ----------
    zookeeper : ZooKeeper
    fence : callable
        The leadership under which drivers are revoked.
    """

    def __init__(self, zookeeper: ZooKeeper, fence: Callable[[], Fence]) -> None:
        self._zookeeper = zookeeper
        self._fence = fence
        self._lock = threading.Lock()
        self._watches: dict[JobId, _Watch] = {}
        #: by the masters that are alive; those known already
        self._revoked: set[str] = set()
        self._on_revoked: list[Callable[[DriverId], None]] = []

    def holder(self, job_id: JobId) -> DriverLeaseInfo | None:
        """The driver that has the lease now."""
        found = self._zookeeper.get(lease_node(self._zookeeper, job_id))
        return None if found is None else _parse(found[0])

    def watch(self, job_id: JobId, listener: Callable[[DriverLeaseInfo | None], None]) -> None:
        """Call ``listener`` with the present holder and with each change."""
        watch = _Watch(self._zookeeper, job_id, listener)
        with self._lock:
            before = self._watches.pop(job_id, None)
            self._watches[job_id] = watch
        if before is not None:
            before.end()
        watch.begin()

    def unwatch(self, job_id: JobId) -> None:
        with self._lock:
            watch = self._watches.pop(job_id, None)
        if watch is not None:
            watch.end()

    def revoke(self, job_id: JobId, driver_id: DriverId) -> None:
        """The driver must end.

        Raises
        ------
        LeadershipLost
            Another master leads, which may have taken the driver over.
        """
        parent = self._zookeeper.ensure(REVOKED)
        try:
            self._zookeeper.commit(
                f"revoke {driver_id}",
                self._fence().epoch,
                lambda t: t.create(f"{parent}/{driver_id}", job_id.encode()),
            )
        except NodeExistsError:
            return
        self._forget_old(parent)

    def on_revoked(self, listener: Callable[[DriverId], None]) -> None:
        """Call ``listener`` for each driver that must end, those of the last hour included."""
        first = not self._on_revoked
        self._on_revoked.append(listener)
        if first:
            self._zookeeper.ensure(REVOKED)
            self._zookeeper.keep_fresh(self._refresh_revoked)

    def _refresh_revoked(self) -> None:
        watch = self._zookeeper.refresher(self._refresh_revoked)
        names = set(self._zookeeper.children(self._zookeeper.path(REVOKED), watch))
        new, self._revoked = names - self._revoked, names
        for name in sorted(new):
            for listener in list(self._on_revoked):
                listener(DriverId(name))

    def _forget_old(self, parent: str) -> None:
        now_ms = time.time_ns() // 1_000_000
        for name in self._zookeeper.children(parent):
            found = self._zookeeper.get(f"{parent}/{name}")
            if found is not None and now_ms - int(found[1].ctime) > _REVOKED_KEPT_MS:
                self._zookeeper.delete(f"{parent}/{name}")


class _Watch:
    """One job's lease under a listener's eyes."""

    def __init__(
        self, zookeeper: ZooKeeper, job_id: JobId, listener: Callable[[DriverLeaseInfo | None], None]
    ) -> None:
        self._zookeeper = zookeeper
        self._path = lease_node(zookeeper, job_id)
        self._listener = listener
        #: what the listener knows, in a tuple; empty = nothing yet
        self._told: tuple[DriverLeaseInfo | None, ...] = ()

    def begin(self) -> None:
        self._zookeeper.keep_fresh(self._refresh)

    def end(self) -> None:
        self._zookeeper.forget(self._refresh)

    def _refresh(self) -> None:
        found = self._zookeeper.get(self._path, self._zookeeper.refresher(self._refresh))
        holder = None if found is None else _parse(found[0])
        if self._told != (holder,):
            self._told = (holder,)
            self._listener(holder)


def _parse(content: bytes) -> DriverLeaseInfo | None:
    try:
        return from_json(DriverLeaseInfo, content.decode())
    except (RpcProtocolError, UnicodeDecodeError) as error:
        logger.error("A driver's lease cannot be understood: %s", error)
        return None
