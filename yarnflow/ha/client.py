"""Nodes of one cluster in ZooKeeper, as all the parts of high availability use them.

Decides what is done again when an answer was lost, and what must not be.  Whoever is called as a
listener (:mod:`yarnflow.ha.listeners`) never waits here for a lost connection to come back: that it is
lost is told in the same thread.  Never decides what a node means.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from kazoo.client import TransactionRequest
from kazoo.exceptions import (
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
)

from yarnflow.errors import ForeignNode, LeadershipLost, ZooKeeperUnavailable
from yarnflow.ha.connection import Connection, ZooKeeperConnection, refused
from yarnflow.ha.listeners import Listeners
from yarnflow.ha.own_nodes import OwnNodes
from yarnflow.ha.settings import ZooKeeperSettings
from yarnflow.ha.stores.incarnations import parts_of

logger = logging.getLogger(__name__)

#: tries of a change that is done once or not at all
_OWN_ATTEMPTS: Final = 3


class ZooKeeper:
    """A session of one process; made by :func:`open_zookeeper`.

    Every method that asks ZooKeeper raises :class:`ZooKeeperUnavailable` when there is no answer for as
    long as a session lasts, :class:`ForeignNode` when a node is somebody else's
    (:mod:`yarnflow.ha.own_nodes`), and :class:`HaError` when ZooKeeper refuses for another reason.

    Parameters
    ----------
    settings, secret, sessions
        As in :class:`~yarnflow.ha.connection.ZooKeeperConnection`.
    """

    def __init__(self, settings: ZooKeeperSettings, secret: bytes, sessions: Path | None = None) -> None:
        self.settings: Final = settings
        self._secret: Final = secret
        self._connection = ZooKeeperConnection(
            settings, secret, sessions, lambda state: self._listeners.changed(state)
        )
        self._client: Final = self._connection.client
        self._nodes: Final = OwnNodes(self._client, settings.root, self._connection.rights, self._ask)
        self._listeners = Listeners(lambda: self.connection is Connection.CONNECTED)

    # --- life ---

    def open(self) -> None:
        """Connect.

        Raises
        ------
        ZooKeeperUnavailable
            No server answers in time.
        """
        self._connection.open()
        self._listeners.start()

    def close(self) -> None:
        """End the session; ephemeral nodes go at once.  Idempotent."""
        self._listeners.close()
        self._connection.close()

    # --- facts ---

    @property
    def connection(self) -> Connection:
        return self._connection.state

    @property
    def session_timeout_ms(self) -> int:
        """Agreed with the server."""
        return self._connection.session_timeout_ms

    @property
    def session_id(self) -> int:
        """Of the present or the last session."""
        return self._connection.session_id

    def path(self, *parts: str) -> str:
        """Absolute path of a node of the cluster."""
        return "/".join((self.settings.root, *(part for part in parts if part)))

    def key_of(self, path: str) -> bytes:
        """Return what the content of a node is signed with; of this cluster and this node alone."""
        return hmac.digest(self._secret, f"yarnflow zookeeper node {path}".encode(), "sha256")

    # --- nodes ---

    def get(self, path: str, watch: Callable[[], None] | None = None) -> tuple[bytes, Any] | None:
        """Content and stat of a node; None = there is none.  ``watch`` is called once at its next change."""
        return self._nodes.get(path, watch)

    def get_all(self, paths: Sequence[str]) -> list[tuple[bytes, Any] | None]:
        """As :meth:`get` of each; asked for together, so that many take hardly longer than one."""
        return self._nodes.get_all(paths)

    def children(self, path: str, watch: Callable[[], None] | None = None) -> list[str]:
        """Names below a node, none if there is no such node; that is not watched for."""
        return self._nodes.children(path, watch)

    def ensure(self, *parts: str) -> str:
        """Create a node of the cluster and those above it; returns its path."""
        return self._nodes.ensure(self.path(*parts).removeprefix(self.settings.root).split("/")[1:])

    def excess_rights(self) -> str:
        """Return what everybody may do at the shared parent but make and end clusters; empty = nothing."""
        return self._nodes.excess_rights()

    def create(self, path: str, content: bytes, *, ephemeral: bool = False, sequence: bool = False) -> str:
        """Create a node below one that is there; returns its path.

        Raises
        ------
        NodeExistsError
            There is one, perhaps made by this call itself, whose answer was lost.
        """
        return str(
            self._ask(
                f"create {path}",
                lambda: self._client.create_async(path, content, ephemeral=ephemeral, sequence=sequence),
            )
        )

    def delete(self, path: str) -> bool:
        """Delete a node if it is there; False when nodes are below it."""
        try:
            self._ask(f"delete {path}", lambda: self._client.delete_async(path))
        except NoNodeError:
            pass
        except NotEmptyError:
            return False
        return True

    def set_own(self, path: str, content: bytes) -> bool:
        """Replace the content of an ephemeral node of this session; False when it is not one (any more)."""
        return self._change_own(f"write {path}", path, lambda: self._client.set_async(path, content))

    def delete_own(self, path: str) -> bool:
        """Delete an ephemeral node of this session; False when it is not one (any more)."""
        return self._change_own(f"delete {path}", path, lambda: self._client.delete_async(path))

    def owns(self, path: str) -> bool:
        """Whether it is an ephemeral node of this session."""
        found = self.get(path)
        return found is not None and int(found[1].ephemeralOwner) == self.session_id

    def _change_own(self, what: str, path: str, begin: Callable[[], Any]) -> bool:
        for attempts_left in range(_OWN_ATTEMPTS - 1, -1, -1):
            if not self.owns(path):
                return False
            try:
                # never again by itself: that could be in the next session, when the node is another's
                self._connection.ask(what, begin, patient=False)
                return True
            except NoNodeError:
                return False
            except ZooKeeperUnavailable:
                if not attempts_left:
                    raise
        return False

    def delete_cluster(self) -> None:
        """Delete all nodes of the cluster; an empty one stays where only others may delete it."""
        try:
            self.delete_tree(self.settings.root)
        except ForeignNode:
            if self.children(self.settings.root):
                raise
            # who may delete it is for the shared parent to say; so nobody else can take the cluster's name
            logger.info("%s stays in ZooKeeper, empty.", self.settings.root)

    def delete_tree(self, path: str) -> None:
        """Delete a node with all below it, whoever still adds to it."""
        while True:
            for name in self.children(path):
                self.delete_tree(f"{path}/{name}")
            if self.delete(path):
                return

    # --- several changes at once ---

    def transact(self, what: str, fill: Callable[[TransactionRequest], None]) -> None:
        """All of a change or nothing of it.

        Raises
        ------
        NoNodeError, NodeExistsError, BadVersionError
            Of the first operation that failed; also when an earlier try, whose answer was lost, came
            through.
        """
        failure = self._failure(what, fill)
        if failure is not None:
            raise failure[1]

    def commit(self, what: str, epoch: int, fill: Callable[[TransactionRequest], None]) -> None:
        """As :meth:`transact`, and only while ``epoch`` is the newest.

        Raises
        ------
        LeadershipLost
            A newer leader has raised the epoch.
        NoNodeError, NodeExistsError, BadVersionError
            As in :meth:`transact`.
        """

        node, version = parts_of(epoch)

        def fenced(transaction: TransactionRequest) -> None:
            # the version of the node is the epoch: it is created at 0 and only ever raised by one
            transaction.check(self.path(node), version)
            fill(transaction)

        failure = (0, None) if epoch < 1 else self._failure(what, fenced)
        if failure is None:
            return
        number, error = failure
        if number == 0 or error is None:
            raise LeadershipLost(f"this master led in epoch {epoch} and does not any more: {what} not done")
        raise error

    def assert_leads(self, epoch: int) -> None:
        """Raises LeadershipLost when a newer leader has raised the epoch."""
        self.commit("change the cluster's nodes", epoch, lambda _transaction: None)

    def confirm(self, path: str, answer: Callable[[bool], None]) -> None:
        """Have the quorum's leader say that a node is there, and this session alive; returns at once.

        A read would not do: a server that is cut off from the others answers it for a while, and would
        not know that the session has ended.

        Parameters
        ----------
        answer : callable
            Told whether it is there, in a thread of kazoo's: must return at once.  Not told anything
            when there is no answer.
        """
        if self.connection is not Connection.CONNECTED:
            return
        transaction = self._client.transaction()
        # any version
        transaction.check(path, -1)

        def answered(result: Any) -> None:
            if not result.successful():
                return
            (checked,) = result.value
            if isinstance(checked, NoNodeError):
                answer(False)
            elif not isinstance(checked, Exception):
                answer(True)

        transaction.commit_async().rawlink(answered)

    def _failure(self, what: str, fill: Callable[[TransactionRequest], None]) -> tuple[int, Exception] | None:
        """Number and error of the operation that failed."""

        def begin() -> Any:
            transaction = self._client.transaction()
            fill(transaction)
            return transaction.commit_async()

        for number, result in enumerate(self._ask(what, begin)):
            if isinstance(result, (RolledBackError, RuntimeInconsistency)):
                continue
            if isinstance(result, (NoNodeError, NodeExistsError, BadVersionError)):
                return number, result
            if isinstance(result, Exception):
                raise refused(what, result)
        return None

    def _ask(self, what: str, begin: Callable[[], Any]) -> Any:
        return self._connection.ask(what, begin, patient=not self._listeners.here())

    # --- listeners ---

    def on_connection(self, listener: Callable[[Connection], None]) -> None:
        """Call ``listener`` at each change of the connection."""
        self._listeners.on_connection(listener)

    def keep_fresh(self, refresh: Callable[[], None]) -> None:
        """Call ``refresh`` now and whenever ZooKeeper is connected again; it sets its own watches."""
        self._listeners.keep_fresh(refresh)

    def refresher(self, refresh: Callable[[], None]) -> Callable[[], None]:
        """A watch that leads to ``refresh``, or a call of it, in the thread of listeners."""
        return self._listeners.refresher(refresh)

    def forget(self, refresh: Callable[[], None]) -> None:
        """No more calls of a refresh."""
        self._listeners.forget(refresh)

    def post(self, action: Callable[[], None]) -> None:
        """Run in the thread of listeners."""
        self._listeners.post(action)

    def settle(self) -> None:
        """Wait until listeners were told all that was to be told before; not for listeners."""
        self._listeners.settle(self.settings.session_timeout_ms / 1000)


def open_zookeeper(settings: ZooKeeperSettings, secret: bytes, session_file_dir: Path | None) -> ZooKeeper:
    """Connect this process.

    Raises
    ------
    ZooKeeperUnavailable
        No server of the quorum answers in time.
    """
    zookeeper = ZooKeeper(settings, secret, session_file_dir)
    zookeeper.open()
    return zookeeper
