"""A process's connection to ZooKeeper: one kazoo client, and how long anybody waits for it.

Decides how a lost connection is tried again, how errors are told and who may read what the process
writes.  No call waits longer than a session lasts: kazoo alone would keep a call that is made while
no server answers for as long as that is so.  Never decides what a node means, nor what is to be done
when the connection is lost: listeners are told.

The session's id and password are left in a file of the process's supervisor: when the process was
killed, the supervisor ends the session (:mod:`yarnflow.ha.sessions`), and nobody waits for its
time-out.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import threading
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    OperationTimeoutError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.retry import KazooRetry

from yarnflow.errors import ForeignNode, HaError, ZooKeeperUnavailable
from yarnflow.ha.granted_timeout import GrantedTimeoutHandler
from yarnflow.ha.own_nodes import NodeRights
from yarnflow.ha.sessions import kazoo_logger, remove_session, write_session
from yarnflow.ha.settings import ZooKeeperSettings

logger = logging.getLogger(__name__)

#: how often somebody who waits for an answer looks whether one can still come
_LOOK_S: Final = 0.2
_REVIVAL_PAUSE_S: Final = 1.0
#: of one node; what they mean is for the caller to say
_ANSWERS: Final = (NoNodeError, NodeExistsError, BadVersionError, NotEmptyError)
#: the answer is lost, and the call may or may not have been done
_UNANSWERED: Final = (
    ConnectionClosedError,
    ConnectionLoss,
    OperationTimeoutError,
    SessionExpiredError,
    KazooTimeoutError,
    OSError,
)


class Connection(Enum):
    """How this process stands with ZooKeeper."""

    CONNECTED = "CONNECTED"
    #: no server answers; the session may go on
    SUSPENDED = "SUSPENDED"
    #: the session is over, with every ephemeral node of it
    LOST = "LOST"


class ZooKeeperConnection:
    """Keeps a session as long as that can be done, and begins a new one when it is over.

    Parameters
    ----------
    settings : ZooKeeperSettings
    secret : bytes
        The cluster's; its holders can read and change what is written here.
    sessions : Path, optional
        Where the session is left for the supervisor.
    on_change : callable
        Told each new state, in kazoo's own thread: must return at once.
    """

    def __init__(
        self,
        settings: ZooKeeperSettings,
        secret: bytes,
        sessions: Path | None,
        on_change: Callable[[Connection], None],
    ) -> None:
        self._settings = settings
        self._sessions = sessions
        self._on_change = on_change
        password = hmac.new(secret, b"yarnflow zookeeper", hashlib.sha256).hexdigest()
        self.rights: Final = NodeRights(password if settings.protected else None)
        self._granted_ms = settings.session_timeout_ms
        self.client: Final = KazooClient(
            handler=GrantedTimeoutHandler(self._note_granted_timeout, self._connecting),
            hosts=settings.quorum,
            timeout=settings.session_timeout_ms / 1000,
            auth_data=self.rights.login,
            default_acl=self.rights.own,
            connection_retry=KazooRetry(
                max_tries=-1,
                delay=settings.retry_wait_ms / 1000,
                backoff=2,
                max_delay=settings.max_retry_wait_ms / 1000,
            ),
            logger=kazoo_logger(),
        )
        self._state = Connection.SUSPENDED
        self._session_id = 0
        self._connected = threading.Event()
        #: by the monotonic clock; None = it is not lost
        self._suspended_s: float | None = None
        self._closed = False

    def open(self) -> None:
        """Connect.

        Raises
        ------
        ZooKeeperUnavailable
            No server answers in time.
        """
        self.client.add_listener(self._state_changed)
        try:
            self.client.start(timeout=self._settings.connection_timeout_ms / 1000)
            # its start does not wait for its listeners
            self._connected.wait(self._settings.connection_timeout_ms / 1000)
        except (KazooTimeoutError, KazooException, OSError) as error:
            self.close()
            raise ZooKeeperUnavailable(
                f"no ZooKeeper server of {self._settings.quorum} answered within "
                f"{self._settings.connection_timeout_ms / 1000:g} s ({type(error).__name__}); check "
                "high-availability.zookeeper.quorum and that the servers run"
            ) from error

    def close(self) -> None:
        """End the session; ephemeral nodes go at once.  Idempotent."""
        if self._closed:
            return
        self._closed = True
        try:
            self.client.stop()
            self.client.close()
        except Exception as error:  # nothing can be done about it any more
            logger.info("The ZooKeeper session could not be closed in good order: %s", error)
        if self._sessions is not None:
            remove_session(self._sessions, os.getpid())

    @property
    def state(self) -> Connection:
        return self._state

    @property
    def session_id(self) -> int:
        """Of the present session, or of the last one while none is known; 0 = there was none yet."""
        return self._session_id

    @property
    def session_timeout_ms(self) -> int:
        """Agreed with the server, which may have granted less than was asked for."""
        return self._granted_ms

    def ask(self, what: str, begin: Callable[[], Any], patient: bool) -> Any:
        """Ask ZooKeeper, again when the answer is lost; ``begin`` may be called more than once.

        Parameters
        ----------
        what : str
            For messages: "read /a/b".
        begin : callable
            Makes the request; returns kazoo's asynchronous result.
        patient : bool
            Wait for a lost connection to come back.

        Raises
        ------
        NoNodeError, NodeExistsError, BadVersionError, NotEmptyError
            As they are.
        ZooKeeperUnavailable
            There is no answer; the request may have been done, or may be done later.
        ForeignNode
            The node, or the one above it, is somebody else's.
        HaError
            Anything else.
        """
        deadline = time.monotonic() + self._settings.session_timeout_ms / 1000
        while True:
            if not self._connected.wait(deadline - time.monotonic() if patient else 0):
                raise self._unavailable(what, self._state.value.lower())
            try:
                return self._answer(what, begin(), deadline, patient)
            except (*_ANSWERS, ZooKeeperUnavailable):
                raise
            except _UNANSWERED as error:
                if self._closed or not patient or time.monotonic() >= deadline:
                    raise self._unavailable(what, type(error).__name__) from error
            except KazooException as error:
                raise refused(what, error) from error

    def _answer(self, what: str, result: Any, deadline: float, patient: bool) -> Any:
        while not result.wait(min(_LOOK_S, max(deadline - time.monotonic(), 0))):
            if time.monotonic() >= deadline:
                raise self._unavailable(what, "too late")
            # made in the moment the connection broke, it stands in kazoo's queue until there is another
            if not patient and not self.client.connected:
                raise self._unavailable(what, self._state.value.lower())
        return result.get()

    def _unavailable(self, what: str, why: str) -> ZooKeeperUnavailable:
        return ZooKeeperUnavailable(
            f"ZooKeeper ({self._settings.quorum}) did not answer: {what} ({why}); see that most of its "
            "servers run"
        )

    def _state_changed(self, state: str) -> None:
        """In kazoo's own thread, which nothing may hold up."""
        now = {
            KazooState.CONNECTED: Connection.CONNECTED,
            KazooState.SUSPENDED: Connection.SUSPENDED,
        }.get(state, Connection.LOST)
        self._state = now
        self._suspended_s = time.monotonic() if now is Connection.SUSPENDED else None
        if now is Connection.CONNECTED:
            session = self.client.client_id
            if session is not None:
                self._session_id = int(session[0])
                # before there is anything that somebody would have to wait for
                self._leave(session)
            self._connected.set()
        else:
            self._connected.clear()
        if self._closed:
            return
        if now is Connection.LOST and self.client.client_state == KeeperState.CLOSED:
            # kazoo's loop has ended by an error of its own and would never connect again
            threading.Thread(target=self._revive, name="zookeeper-revival", daemon=True).start()
        self._on_change(now)

    def _leave(self, session: tuple[int, bytes]) -> None:
        if self._sessions is None:
            return
        try:
            write_session(self._sessions, os.getpid(), session)
        except OSError as error:
            logger.warning(
                "The ZooKeeper session cannot be left in %s: %s; if this process is killed, it lasts until "
                "its time-out",
                self._sessions,
                error,
            )

    def _revive(self) -> None:
        logger.error("The connection to ZooKeeper ended by an error of the client; connecting again.")
        while not self._closed:
            time.sleep(_REVIVAL_PAUSE_S)
            try:
                self.client.start_async()
                return
            except Exception as error:
                logger.error("Cannot connect to ZooKeeper again: %s", error)

    def _connecting(self) -> None:
        """In kazoo's own thread, before it tries to connect.

        A server that knows fewer changes than this process has seen refuses it, so that nobody goes back in
        time: it may lag behind the others.  After ZooKeeper has lost its data all servers would, for ever.
        A session that has been out of touch for as long as it lasts may only be told that it has expired.
        """
        since_s = self._suspended_s
        if since_s is None or time.monotonic() - since_s < self._granted_ms / 1000:
            return
        if self.client.last_zxid:
            logger.warning(
                "No ZooKeeper server has taken this process for %d ms; it connects as if it had seen "
                "nothing, as the servers may have lost their data.",
                (time.monotonic() - since_s) * 1000,
            )
            self.client.last_zxid = 0

    def _note_granted_timeout(self, timeout_ms: int) -> None:
        self._granted_ms = timeout_ms


def refused(what: str, error: Exception) -> HaError:
    """Return what to tell of an answer that is none of those a caller expects."""
    if isinstance(error, NoAuthError):
        return ForeignNode(
            f"ZooKeeper refused to {what}, as that is somebody else's; if the cluster was started with "
            "another secret, stop it first or use another high-availability.cluster-id or "
            "high-availability.zookeeper.path.root"
        )
    return HaError(f"ZooKeeper refused to {what}: {type(error).__name__}")
