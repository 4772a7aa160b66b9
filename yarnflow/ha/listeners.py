"""The thread in which everybody is told what happens in ZooKeeper.

One thread of our own, in order: so listeners may ask ZooKeeper in turn, which kazoo's threads must
not, and what happened first is told first.  Never asks ZooKeeper itself.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Final

from yarnflow.errors import HaError
from yarnflow.ha.connection import Connection

logger = logging.getLogger(__name__)

_RETRY_S: Final = 1.0


class Listeners:
    """Runs listeners and refreshes in turn.

    Parameters
    ----------
    connected : callable
        Whether ZooKeeper answers at present.
    """

    def __init__(self, connected: Callable[[], bool]) -> None:
        self._connected = connected
        self._events: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._listeners: tuple[Callable[[Connection], None], ...] = ()
        self._refreshes: tuple[Callable[[], None], ...] = ()
        self._closed = False
        self._thread = threading.Thread(target=self._dispatch, name="zookeeper-events", daemon=True)

    def start(self) -> None:
        """Begin; what was posted before is done first."""
        self._thread.start()

    def close(self) -> None:
        """What is not done yet is left."""
        self._closed = True
        self._events.put(None)

    def here(self) -> bool:
        """The caller is a listener."""
        return threading.current_thread() is self._thread

    def post(self, action: Callable[[], None]) -> None:
        """Run it when its turn comes."""
        self._events.put(action)

    def settle(self, timeout_s: float) -> None:
        """Wait until everything is done that was posted before; not for listeners."""
        if self.here():
            return
        done = threading.Event()
        self.post(done.set)
        done.wait(timeout_s)

    def on_connection(self, listener: Callable[[Connection], None]) -> None:
        """Call ``listener`` at each change of the connection."""
        with self._lock:
            self._listeners += (listener,)

    def changed(self, state: Connection) -> None:
        """The connection is in another state; any thread."""
        self.post(partial(self._tell, state))

    def keep_fresh(self, refresh: Callable[[], None]) -> None:
        """Call ``refresh`` now and whenever ZooKeeper is connected again."""
        with self._lock:
            self._refreshes += (refresh,)
        self.post(partial(self.refresh, refresh))

    def refresher(self, refresh: Callable[[], None]) -> Callable[[], None]:
        """A watch that leads to ``refresh``."""
        return Refresher(self, refresh)

    def forget(self, refresh: Callable[[], None]) -> None:
        """No more calls of a refresh."""
        with self._lock:
            self._refreshes = tuple(known for known in self._refreshes if known != refresh)

    def refresh(self, refresh: Callable[[], None]) -> None:
        """Run a refresh unless it was forgotten; only as a listener."""
        if refresh not in self._refreshes or self._closed:
            return
        try:
            refresh()
        except HaError as error:
            if not self._connected():
                return  # everything is refreshed when it is
            logger.info("ZooKeeper is asked again later: %s", error)
            timer = threading.Timer(_RETRY_S, Refresher(self, refresh))
            timer.daemon = True
            timer.start()

    def _tell(self, state: Connection) -> None:
        logger.info("ZooKeeper: %s.", state.value)
        for listener in self._listeners:
            self._run(partial(listener, state))
        if state is Connection.CONNECTED:
            for refresh in self._refreshes:
                self._run(partial(self.refresh, refresh))

    def _dispatch(self) -> None:
        while (action := self._events.get()) is not None:
            self._run(action)

    def _run(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception:
            logger.exception("A listener to ZooKeeper failed")


@dataclass(frozen=True)
class Refresher:
    """Equal to others of the same refresh, so that kazoo keeps one watch and not one of each time."""

    listeners: Listeners
    refresh: Callable[[], None]

    def __call__(self) -> None:
        self.listeners.post(partial(self.listeners.refresh, self.refresh))
