"""The right to write one job's checkpoint directory: an ephemeral node of its driver's session.

The driver takes the node, has the quorum confirm again and again that it is there, and knows by
:mod:`yarnflow.core.ha.lease` until when nobody else can have it.  What it does when the lease is lost is
for its listeners to decide.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from kazoo.exceptions import NodeExistsError, NoNodeError

from yarnflow.core.ha.lease import LeaseClock, LeaseState
from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import to_json
from yarnflow.errors import HaError, LeaseLost
from yarnflow.ha.client import ZooKeeper
from yarnflow.ha.connection import Connection
from yarnflow.ha.leases import REVOKED, lease_node

logger = logging.getLogger(__name__)

#: confirmations within one term
_LOOKS_PER_TERM: Final = 4
#: how long a change can go unnoticed while the connection, and a watch with it, breaks
_LOOK_AGAIN_S: Final = 1.0


class ZooKeeperLease:
    """Implements :class:`yarnflow.core.ha.ports.DriverLease`.

    Parameters
    ----------
    zookeeper : ZooKeeper
        The driver's own session: the lease ends with it.
    job_id : JobId
    """

    def __init__(self, zookeeper: ZooKeeper, job_id: JobId) -> None:
        self._zookeeper = zookeeper
        self._job_id = job_id
        self._path = lease_node(zookeeper, job_id)
        self._lock = threading.Lock()
        self._clock = LeaseClock(zookeeper.session_timeout_ms)
        self._driver_id = ""
        self._listeners: list[Callable[[str], None]] = []
        self._told = False
        self._stop = threading.Event()

    def acquire(self, info: DriverLeaseInfo, timeout_ms: int) -> None:
        """Take it, waiting for an earlier holder's to end.

        Raises
        ------
        LeaseLost
            It was not to be had in time, or this driver was revoked.
        """
        deadline_ms = _now_ms() + timeout_ms
        self._zookeeper.ensure("jobs", self._job_id)
        while True:
            if self._is_revoked(info.driver_id):
                raise LeaseLost(f"driver {info.driver_id} was replaced; it must end")
            sent_ms = _now_ms()
            session_id = self._zookeeper.session_id
            if self._take(info):
                break
            changed = threading.Event()
            holder = self._zookeeper.get(self._path, changed.set)
            if holder is None:
                continue
            remaining_s = (deadline_ms - _now_ms()) / 1000
            if remaining_s <= 0:
                raise LeaseLost(
                    f"the lease of job {self._job_id} was not free within {timeout_ms / 1000:g} s; it is "
                    f"held by {holder[0].decode(errors='replace')}"
                )
            changed.wait(min(remaining_s, _LOOK_AGAIN_S))
        with self._lock:
            self._clock = replace(
                self._clock, session_timeout_ms=self._zookeeper.session_timeout_ms
            ).acquired(sent_ms)
            self._driver_id = info.driver_id
        self._zookeeper.on_connection(self._connection_changed)
        if session_id != self._zookeeper.session_id:
            self._lose("its ZooKeeper session is over")
        logger.info("Driver %s has the lease of job %s.", info.driver_id, self._job_id)
        self._zookeeper.keep_fresh(self._refresh_revoked)
        threading.Thread(target=self._keep, name="lease", daemon=True).start()

    def update(self, info: DriverLeaseInfo) -> None:
        """Say more about the holder.

        Raises
        ------
        LeaseLost
            It is not the holder any more.
        """
        self.check()
        if not self._zookeeper.set_own(self._path, to_json(info).encode()):
            self._lose("its node in ZooKeeper is gone")
            self.check()

    def check(self) -> None:
        """Return while nobody else can have the lease.

        Raises
        ------
        LeaseLost
            Write nothing.
        """
        now_ms = _now_ms()
        with self._lock:
            clock = self._clock = self._clock.looked_at(now_ms)
        if not clock.may_write(now_ms):
            self._tell()
            reason = clock.reason or f"it is {clock.state.value.lower()}"
            raise LeaseLost(f"the lease of job {self._job_id} is lost: {reason}; nothing is written")

    def on_lost(self, listener: Callable[[str], None]) -> None:
        """Call ``listener`` once when it is lost."""
        self._listeners.append(listener)
        self._tell()

    def release(self) -> None:
        self._stop.set()
        self._zookeeper.forget(self._refresh_revoked)
        with self._lock:
            held = self._clock.state is LeaseState.HELD
            self._clock = self._clock.released()
        if held:
            try:
                self._zookeeper.delete_own(self._path)
                # of a job that is over, this was the last node
                self._zookeeper.delete(self._path.rpartition("/")[0])
            except HaError as error:
                logger.info("The lease ends with the session: %s", error)

    def _take(self, info: DriverLeaseInfo) -> bool:
        try:
            self._zookeeper.create(self._path, to_json(info).encode(), ephemeral=True)
        except NoNodeError:
            self._zookeeper.ensure("jobs", self._job_id)
            return self._take(info)
        except NodeExistsError:
            # by an earlier try whose answer was lost
            return self._zookeeper.owns(self._path)
        return True

    def _keep(self) -> None:
        """Have it confirmed again and again; say so when the last time is too long ago."""
        while True:
            now_ms = _now_ms()
            with self._lock:
                clock = self._clock = self._clock.looked_at(now_ms)
            if clock.state is not LeaseState.HELD:
                break
            pause_ms = min(clock.term_ms // _LOOKS_PER_TERM, clock.valid_until_ms - now_ms)
            if self._stop.wait(pause_ms / 1000):
                return
            self._zookeeper.confirm(self._path, partial(self._confirmed, _now_ms()))
        self._tell()

    def _confirmed(self, sent_ms: int, there: bool) -> None:
        if not there:
            self._lose("its node in ZooKeeper is gone")
            return
        with self._lock:
            self._clock = self._clock.renewed(sent_ms)

    def _connection_changed(self, connection: Connection) -> None:
        if connection is Connection.LOST:
            self._lose("its ZooKeeper session is over")

    def _refresh_revoked(self) -> None:
        if self._is_revoked(self._driver_id, self._zookeeper.refresher(self._refresh_revoked)):
            self._lose("a master has revoked it")

    def _is_revoked(self, driver_id: str, watch: Callable[[], None] | None = None) -> bool:
        return self._zookeeper.get(self._zookeeper.path(REVOKED, driver_id), watch) is not None

    def _lose(self, reason: str) -> None:
        with self._lock:
            self._clock = self._clock.lost(reason)
        self._tell()

    def _tell(self) -> None:
        with self._lock:
            if self._clock.state is not LeaseState.LOST or self._told or not self._listeners:
                return
            self._told = True
            reason = self._clock.reason
        for listener in self._listeners:
            listener(reason)


def _now_ms() -> int:
    # goes on while the process, or the whole machine, is stopped
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
