"""Drivers as containers of skein's application, one driver in each.

Decides when a container is asked for, which containers are nobody's, and what the end of one means for its
driver: a container is never started again.  Never decides whether a driver is wanted.  Flink has no
counterpart: its jobs run in the JobManager.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from yarnflow.core.ids import DriverId
from yarnflow.core.json_codec import to_json
from yarnflow.core.messages import DriverAssignment
from yarnflow.core.ports import DriverExitListener, DriverWaitListener
from yarnflow.core.yarn import DRIVER_KEY_ENVIRONMENT, DRIVER_MEMORY_ENVIRONMENT
from yarnflow.errors import InvalidMemory
from yarnflow.yarn.container_exit import ContainerExit, container_exit
from yarnflow.yarn.spec import DRIVER_SERVICE

logger = logging.getLogger(__name__)

_PENDING_POLL_S: Final = 0.25
_IDLE_POLL_S: Final = 1.0
#: a request older than this is told of
_WAITS_LONG_S: Final = 30.0
_OPEN: Final = ("WAITING", "REQUESTED")
_LIVE: Final = (*_OPEN, "RUNNING")
_ENDED: Final = ("SUCCEEDED", "FAILED", "KILLED")
#: skein names a container's log after its service
_LOG_NAME: Final = f"{DRIVER_SERVICE}.log"
_KEY_PREFIX: Final = "assignment"
#: reported for a driver that YARN or we have ended; signal 9
_KILLED_STATUS: Final = -9


class EndedContainers(Protocol):
    """Who knows how containers' processes ended (:class:`yarnflow.yarn.web.node_manager.NodeManagers`)."""

    def exit(self, node: str, container_id: str, log_name: str) -> ContainerExit:
        """Exit code and last lines of the log."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A driver without a container."""

    assignment: DriverAssignment
    memory_mib: int


@dataclass(slots=True)
class _Place:
    """The container of a driver."""

    #: skein's, ``driver_3``
    container_id: str
    #: where its assignment was left
    key: str
    asked_s: float
    told: bool = False
    granted: bool = False


class YarnDrivers:
    """A :class:`~yarnflow.core.ports.DriverOwner` whose drivers have containers of their own.

    All methods return at once; one thread talks to skein's ApplicationMaster, once there is a connection to
    it (:meth:`attach`).  An assignment goes through skein's key-value store, where the container's process
    takes it: it may hold secrets, which the environment of a container would show.

    Parameters
    ----------
    memory_mib : int
        What a container has for its driver.
    on_exit : callable
        Told of each driver whose container has ended, once; from the watching thread.
    on_wait : callable
        Told when a driver's container is asked for and when YARN has granted it; quick, any thread.
    monotonic : callable
        Clock in seconds.
    """

    def __init__(
        self,
        memory_mib: int,
        on_exit: DriverExitListener,
        on_wait: DriverWaitListener,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._memory_mib = memory_mib
        self._on_exit = on_exit
        self._on_wait = on_wait
        self._monotonic = monotonic
        self._client: Any = None
        self._nodes: EndedContainers | None = None
        self._changed = threading.Condition()
        self._closed = False
        self._news = False
        self._thread: threading.Thread | None = None
        #: in the order they were asked for
        self._wanted: dict[DriverId, _Wanted] = {}
        #: when each is to be ended
        self._kill_at_s: dict[DriverId, float] = {}
        #: written by the thread only
        self._places: dict[DriverId, _Place] = {}
        # below: the thread's own
        self._paused = False
        self._keys = 0
        #: keys whose assignment nobody is to take any more
        self._stale_keys: list[str] = []
        #: live containers that were told to end
        self._told_to_end: set[str] = set()
        #: containers that YARN has granted
        self._running: set[str] = set()

    def attach(self, client: Any, nodes: EndedContainers | None = None) -> None:
        """Begin to ask for what is wanted so far, and to watch.

        Parameters
        ----------
        client : skein.ApplicationClient
        nodes : EndedContainers, optional
        """
        self._client, self._nodes = client, nodes
        self._thread = threading.Thread(target=self._run, name="yarn-drivers", daemon=True)
        self._thread.start()

    def launch(self, assignment: DriverAssignment, memory_mib: int) -> None:
        """Ask for a container for a driver; one that is known is left as it is."""
        driver_id = assignment.driver_id
        if memory_mib > self._memory_mib:
            error = (
                f"driver.memory.process.size of the job is {memory_mib} MiB; the drivers' containers of this "
                f"application have {self._memory_mib} MiB: lower it, or start a cluster with a larger one"
            )
            self._on_exit(driver_id, InvalidMemory.exit_code, f"error: {error}")
            return
        if driver_id in self.running():
            return
        self._on_wait(driver_id, True)  # first: it may be granted at once
        with self._changed:
            self._wanted.setdefault(driver_id, _Wanted(assignment, memory_mib))
            self._news = True
            self._changed.notify()

    def kill(self, driver_id: DriverId, grace_ms: int = 0) -> None:
        """Give the container back, after ``grace_ms`` if it is there still; unknown ids are ignored."""
        with self._changed:
            if driver_id in self._wanted or driver_id in self._places:
                due_s = self._monotonic() + grace_ms / 1000
                self._kill_at_s[driver_id] = min(due_s, self._kill_at_s.get(driver_id, math.inf))
                self._news = True
                self._changed.notify()

    def kill_all(self) -> None:
        """Give all containers back."""
        for driver_id in self.running():
            self.kill(driver_id)

    def running(self) -> list[DriverId]:
        """Drivers that were asked for and have not ended."""
        with self._changed:
            return [*self._places, *self._wanted]

    def close(self) -> None:
        """Watch no more.  Containers stay as they are."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5.0)

    # --- the thread's ---

    def step(self) -> float | None:
        """Do what was asked for and look once; returns seconds until the next look, None = none is needed."""
        try:
            if self._places or self._wanted or self._stale_keys:
                self._look()
                self._end_due()
                self._request()
        except Exception as error:  # whatever gRPC raises; the ApplicationMaster may be ending
            logger.warning("skein's ApplicationMaster did not do what was asked about drivers: %s", error)
            self._paused = True
            return _IDLE_POLL_S
        now_s = self._monotonic()
        with self._changed:
            pauses = [max(0.0, due_s - now_s) for due_s in self._kill_at_s.values()]
        if self._places:
            all_run = all(place.container_id in self._running for place in self._places.values())
            pauses.append(_IDLE_POLL_S if all_run else _PENDING_POLL_S)
        return min(pauses, default=None)

    def _run(self) -> None:
        while True:
            pause_s = self.step()
            with self._changed:
                # after a failure everything waits, also what is asked for meanwhile
                ready = self._is_closed if self._paused else self._has_news
                self._paused = False
                self._changed.wait_for(ready, timeout=pause_s)
                self._news = False
                if self._closed:
                    return

    def _is_closed(self) -> bool:
        return self._closed

    def _has_news(self) -> bool:
        return self._closed or self._news

    def _look(self) -> None:
        live = {str(c.id): c for c in self._containers(_LIVE)}
        self._running = {name for name, container in live.items() if str(container.state) == "RUNNING"}
        for driver_id, place in self._places.items():
            if not place.granted and place.container_id in self._running:
                place.granted = True
                self._on_wait(driver_id, False)
        tracked = {place.container_id: driver_id for driver_id, place in self._places.items()}
        for name in live.keys() - tracked.keys() - self._told_to_end:
            # of a request that failed when it was made already
            self._end(name)
        gone = tracked.keys() - live.keys()
        for container in self._containers(_ENDED) if gone else ():
            if str(container.id) in gone:
                self._ended(tracked[str(container.id)], container)
        self._told_to_end &= live.keys()
        self._tell_of_long_waits()

    def _containers(self, states: tuple[str, ...]) -> list[Any]:
        return list(self._client.get_containers(services=[DRIVER_SERVICE], states=list(states)))

    def _end_due(self) -> None:
        now_s = self._monotonic()
        with self._changed:
            due = [driver_id for driver_id, due_s in self._kill_at_s.items() if due_s <= now_s]
            never_asked = [driver_id for driver_id in due if self._wanted.pop(driver_id, None) is not None]
            for driver_id in never_asked:
                self._kill_at_s.pop(driver_id, None)
        for driver_id in never_asked:
            self._on_exit(driver_id, _KILLED_STATUS, "it was ended before it had a container")
        for driver_id in due:
            place = self._places.get(driver_id)
            if place is not None:
                self._end(place.container_id)
            with self._changed:
                self._kill_at_s.pop(driver_id, None)

    def _end(self, container_id: str) -> None:
        if container_id in self._told_to_end:
            return
        try:
            self._client.kill_container(container_id)
        except (KeyError, ValueError) as error:
            # it ended meanwhile
            logger.info("container %s could not be given back: %s", container_id, error)
        self._told_to_end.add(container_id)

    def _request(self) -> None:
        while self._stale_keys:
            # a container that is there all the same finds nothing, and ends
            self._client.kv.pop(self._stale_keys[0], None)
            self._stale_keys.pop(0)
        with self._changed:
            wanted = list(self._wanted.values())
        for each in wanted:
            driver_id = each.assignment.driver_id
            self._keys += 1
            key = f"{_KEY_PREFIX}.{driver_id}.{self._keys}"
            self._stale_keys.append(key)
            self._client.kv[key] = to_json(each.assignment).encode("ascii")
            environment = {DRIVER_KEY_ENVIRONMENT: key, DRIVER_MEMORY_ENVIRONMENT: str(each.memory_mib)}
            container = self._client.add_container(DRIVER_SERVICE, env=environment)
            self._stale_keys.remove(key)
            with self._changed:
                self._places[driver_id] = _Place(str(container.id), key, self._monotonic())
                self._wanted.pop(driver_id, None)
            logger.info("Driver %s is container %s.", driver_id, container.id)

    def _ended(self, driver_id: DriverId, container: Any) -> None:
        ended = container_exit(str(container.state), container.exit_message)
        where, node = container.yarn_container_id, container.yarn_node_http_address
        if ended.vague and where and self._nodes is not None:
            ended = self._nodes.exit(node, where, _LOG_NAME)
        said = ended.diagnostics
        if where and said:
            said = f"container {where} on {node}: {said}"
        # one that was never granted has not taken it
        self._stale_keys.append(self._places[driver_id].key)
        with self._changed:
            del self._places[driver_id]
            self._kill_at_s.pop(driver_id, None)
        logger.info("driver %s ended: %s", driver_id, said or "completed")
        status = _KILLED_STATUS if ended.exit_status is None else ended.exit_status
        self._on_exit(driver_id, status, said)

    def _tell_of_long_waits(self) -> None:
        now_s = self._monotonic()
        for driver_id, place in self._places.items():
            if place.told or place.container_id in self._running or now_s - place.asked_s < _WAITS_LONG_S:
                continue
            place.told = True
            logger.warning(
                "YARN has not granted the container of driver %s for %.0f s; is the queue full?",
                driver_id,
                now_s - place.asked_s,
            )
