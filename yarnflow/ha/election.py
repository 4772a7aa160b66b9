"""Who leads: one latch per master process.

Decides, by :mod:`yarnflow.core.ha.leadership`, when this process leads: its node is the oldest below
``leader/latch`` and it has raised the epoch.  Only ZooKeeper's word ends a session: while no server
answers, however long, nobody else can be elected either, or a server that answers says so.  Never
starts or ends anything itself: the contender is told.

Flink counterpart: ``ZooKeeperLeaderElectionDriver``.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from kazoo.client import TransactionRequest
from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

from yarnflow.core.checkpoint.signature import is_signed, signed
from yarnflow.core.ha.leadership import (
    MACHINE,
    ConnectionRestored,
    ConnectionSuspended,
    Elected,
    Freeze,
    Grant,
    Leadership,
    LeadershipEvent,
    LeadershipModel,
    Revoke,
    SessionLost,
    StandAgain,
    Thaw,
)
from yarnflow.core.ha.ports import LeaderContender, MasterInfo
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.errors import HaError, LeadershipLost, RpcProtocolError, StorageError
from yarnflow.ha.client import ZooKeeper
from yarnflow.ha.connection import Connection
from yarnflow.ha.stores.incarnations import (
    GrantedEpochs,
    epoch_of,
    incarnation_after,
    newest_incarnation,
    node_of,
)

logger = logging.getLogger(__name__)

_LATCH: Final = "leader/latch"
_INFO: Final = "leader/connection_info"
#: before the shared file system is asked again who has led
_STORAGE_RETRY_S: Final = 1.0
_PREFIX: Final = "_c_"
_SUFFIX: Final = "-latch-"


class ZooKeeperElection:
    """Implements :class:`yarnflow.core.ha.ports.LeaderElection`.

    Parameters
    ----------
    zookeeper : ZooKeeper
        The session; the candidacy ends with it.
    granted : GrantedEpochs, optional
        Which leaders there were, should ZooKeeper have forgotten; without it nobody would notice.
    """

    def __init__(self, zookeeper: ZooKeeper, granted: GrantedEpochs | None = None) -> None:
        self._zookeeper = zookeeper
        self._granted = granted
        self._leader_id = secrets.token_hex(16)
        self._model = LeadershipModel.create(self._leader_id, _now_ms())
        self._contender: LeaderContender | None = None
        self._me: MasterInfo | None = None
        #: name of this candidacy's node; empty = it has none
        self._node = ""
        #: as last told
        self._masters: tuple[MasterInfo, ...] = ()
        #: by the names of their nodes, whose contents never change
        self._known: dict[str, MasterInfo] = {}
        self._listeners: list[Callable[[Sequence[MasterInfo]], None]] = []
        self._closed = False

    def start(self, contender: LeaderContender, me: MasterInfo) -> None:
        self._contender, self._me = contender, me
        contender.standing_by()
        self._zookeeper.ensure(_LATCH)
        self._warn_of_open_parent()
        self._zookeeper.on_connection(self._connection_changed)
        self._zookeeper.keep_fresh(self._refresh)

    def publish(self, leader: LeaderInfo) -> None:
        """Say where the leader is to be reached.

        Raises
        ------
        LeadershipLost
            This process does not lead.
        """
        path, latch = self._zookeeper.path(_INFO), self._zookeeper.path(_LATCH, self._node)
        content = signed(to_json(leader).encode(), self._zookeeper.key_of(path))
        while True:
            leads = self._model.state in (Leadership.GRANTED, Leadership.SUSPENDED)
            if not leads or leader.fence != Fence(self._leader_id, self._model.epoch):
                raise LeadershipLost(f"this master does not lead in epoch {leader.fence.epoch}")
            if not self._zookeeper.owns(latch):  # the session is another one by now
                raise LeadershipLost("this master's candidacy is gone from ZooKeeper")
            exists = self._zookeeper.get(path) is not None

            def fill(transaction: TransactionRequest, replaced: bool = exists) -> None:
                transaction.check(latch, 0)
                if replaced:  # of an earlier leader, or of an earlier word of this one
                    transaction.delete(path)
                transaction.create(path, content, ephemeral=True)

            try:
                self._zookeeper.commit("publish the leader's address", leader.fence.epoch, fill)
                return
            except (NoNodeError, NodeExistsError):
                continue  # the earlier one's went, or came, meanwhile

    def confirm(self, fence: Fence) -> None:
        """Have ZooKeeper say that this process leads.

        Raises
        ------
        LeadershipLost
            It does not.
        ZooKeeperUnavailable
            Nobody answers.
        """
        latch = self._zookeeper.path(_LATCH, self._node or f"{_PREFIX}gone")
        try:
            # a read would not do: a server may not have heard yet that the session has ended
            self._zookeeper.commit("confirm the lead", fence.epoch, lambda t: t.check(latch, -1))
        except NoNodeError:
            raise LeadershipLost("this master's candidacy is gone from ZooKeeper") from None

    def masters(self) -> Sequence[MasterInfo]:
        """All candidates, oldest first; asks ZooKeeper."""
        return self._read_masters(self._candidates(None))

    def on_masters(self, listener: Callable[[Sequence[MasterInfo]], None]) -> None:
        """Call ``listener`` now and whenever candidates come or go."""
        self._listeners.append(listener)
        self._zookeeper.post(lambda: listener(self._masters))

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._zookeeper.forget(self._refresh)
        try:
            self._zookeeper.delete_own(self._zookeeper.path(_INFO))
            if self._node:
                self._zookeeper.delete(self._zookeeper.path(_LATCH, self._node))
        except HaError as error:
            logger.info("The candidacy ends with the session: %s", error)

    def _warn_of_open_parent(self) -> None:
        excess = self._zookeeper.excess_rights()
        if excess:
            parent = self._zookeeper.settings.root.rpartition("/")[0]
            logger.warning(
                "Everybody may do more at %s in ZooKeeper than make and end a cluster (%s). This cluster's "
                "nodes are safe, but others may keep new ones from being made: have ZooKeeper's "
                "administrator run `setAcl %s world:anyone:cdr`.",
                parent,
                excess,
                parent,
            )

    # --- in the thread of listeners ---

    def _refresh(self) -> None:
        """Look at the candidates; lead when first."""
        if self._closed or self._model.state is Leadership.REVOKED:
            return
        self._stand()
        names = self._candidates(self._zookeeper.refresher(self._refresh))
        self._tell_masters(self._read_masters(names))
        if self._node not in names:
            self._node = ""
            self._step(SessionLost(_now_ms()))
        elif names[0] == self._node and self._model.state is Leadership.FOLLOWER:
            self._lead()

    def _stand(self) -> None:
        if self._node or self._me is None:
            return
        path = self._zookeeper.path(_LATCH, f"{_PREFIX}{self._leader_id}{_SUFFIX}")
        # a node that was made although its answer was lost is found again by its name
        for name in self._zookeeper.children(self._zookeeper.path(_LATCH)):
            if name.startswith(f"{_PREFIX}{self._leader_id}"):
                if self._zookeeper.owns(self._zookeeper.path(_LATCH, name)):
                    self._node = name
                    return
        content = signed(to_json(self._me).encode(), self._key_of_candidates())
        try:
            made = self._zookeeper.create(path, content, ephemeral=True, sequence=True)
        except NoNodeError:  # somebody has removed the cluster
            self._zookeeper.ensure(_LATCH)
            made = self._zookeeper.create(path, content, ephemeral=True, sequence=True)
        self._node = made.rpartition("/")[2]

    def _lead(self) -> None:
        """Raise the epoch, as long as the latch is held, above all that were granted before."""
        latch = self._zookeeper.path(_LATCH, self._node)
        while True:
            incarnation = newest_incarnation(self._zookeeper.children(self._zookeeper.path()))
            path = self._zookeeper.path(node_of(incarnation))
            found = self._zookeeper.get(path)
            if found is None:
                try:
                    self._zookeeper.create(path, b"0")
                except NodeExistsError:
                    pass
                continue
            version = int(found[1].version)
            try:
                if self._granted is not None:
                    self._granted.last()  # else each look while the storage is away would raise the epoch
            except StorageError as error:
                self._cannot_read_granted(error)
                return
            try:
                self._zookeeper.transact("raise the epoch", partial(_raise_epoch, latch, path, version))
            except BadVersionError:
                continue
            except NoNodeError:
                self._node = ""  # the latch went
                self._step(SessionLost(_now_ms()))
                return
            epoch = epoch_of(incarnation, version + 1)
            try:
                last = 0 if self._granted is None else self._granted.last()
                if last < epoch and (self._granted is None or self._granted.note(epoch)):
                    self._step(Elected(_now_ms(), epoch))
                    return
            except StorageError as error:
                self._cannot_read_granted(error)
                return
            self._begin_incarnation(latch, path, max(last, epoch))

    def _begin_incarnation(self, latch: str, path: str, last: int) -> None:
        """ZooKeeper has forgotten leaders up to an epoch: count on from there."""
        incarnation = incarnation_after(last)
        logger.warning(
            "ZooKeeper does not know of the leader of epoch %d: it was emptied, or is older than that. "
            "Incarnation %d of the cluster begins; `yarnflow recover` brings back jobs that were forgotten.",
            last,
            incarnation,
        )
        new = self._zookeeper.path(node_of(incarnation))

        def fill(transaction: TransactionRequest) -> None:
            transaction.check(latch, 0)
            # who led before must not write any more, should it have missed what happened
            transaction.delete(path)
            transaction.create(new, b"0")

        try:
            self._zookeeper.transact("begin an incarnation of the cluster", fill)
        except (NoNodeError, NodeExistsError):
            pass  # an earlier try whose answer was lost; or the latch went, which is found next

    def _cannot_read_granted(self, error: StorageError) -> None:
        logger.warning("Who has led before cannot be read, trying on: %s", error)
        self._look_again_later()

    def _look_again_later(self) -> None:
        timer = threading.Timer(_STORAGE_RETRY_S, self._zookeeper.refresher(self._refresh))
        timer.daemon = True
        timer.start()

    # --- the candidates ---

    def _candidates(self, watch: Callable[[], None] | None) -> list[str]:
        return sorted(self._zookeeper.children(self._zookeeper.path(_LATCH), watch), key=_sequence)

    def _read_masters(self, names: Sequence[str]) -> tuple[MasterInfo, ...]:
        known = self._known
        found = {name: known.get(name) or self._read_master(name) for name in names}
        self._known = {name: info for name, info in found.items() if info is not None}
        return tuple(info for info in found.values() if info is not None)

    def _tell_masters(self, masters: tuple[MasterInfo, ...]) -> None:
        if masters != self._masters:
            self._masters = masters
            for listener in list(self._listeners):
                listener(masters)

    def _read_master(self, name: str) -> MasterInfo | None:
        found = self._zookeeper.get(self._zookeeper.path(_LATCH, name))
        if found is None:
            return None
        unknown = MasterInfo(master_id=name, address="", host="", pid=0, sequence=_sequence(name))
        try:
            master = from_json(MasterInfo, found[0].decode())
        except (RpcProtocolError, UnicodeDecodeError) as error:
            logger.warning("The candidate %s cannot be understood: %s", name, error)
            return unknown
        # the leader calls candidates, and hands them drivers to run
        if not is_signed(found[0], self._key_of_candidates()):
            logger.warning(
                "The candidate %s is not signed with this cluster's secret, so %s is not called: restart it "
                "if it is of an earlier version.", name, master.address,
            )  # fmt: skip
            return unknown
        return replace(master, sequence=_sequence(name))

    def _key_of_candidates(self) -> bytes:
        # what a node will be called is not known before it is there
        return self._zookeeper.key_of(self._zookeeper.path(_LATCH))

    # --- the machine ---

    def _connection_changed(self, connection: Connection) -> None:
        if self._closed:
            return
        if connection is Connection.CONNECTED:
            self._step(ConnectionRestored(_now_ms()))
        elif connection is Connection.SUSPENDED:
            self._step(ConnectionSuspended(_now_ms()))
        else:
            self._node = ""
            self._step(SessionLost(_now_ms()))

    def _step(self, event: LeadershipEvent) -> None:
        if self._model.state is Leadership.REVOKED:
            return
        before = self._model.state
        self._model, effects = MACHINE.step(self._model, event)
        if self._model.state is not before:
            logger.info("Leadership of %s: %s → %s.", self._leader_id, before.value, self._model.state.value)
        contender = self._contender
        if contender is None:
            return
        for effect in effects:
            if isinstance(effect, Grant):
                contender.granted(effect.fence)
            elif isinstance(effect, Freeze):
                contender.suspended()
            elif isinstance(effect, Thaw):
                contender.resumed()
            elif isinstance(effect, Revoke):
                logger.warning("This master does not lead any more: %s.", effect.reason)
                contender.revoked()
            elif isinstance(effect, StandAgain) and self._zookeeper.connection is Connection.CONNECTED:
                self._zookeeper.refresher(self._refresh)()


def _raise_epoch(latch: str, epoch: str, version: int, transaction: TransactionRequest) -> None:
    transaction.check(latch, 0)
    transaction.set_data(epoch, str(version + 1).encode(), version)


def _sequence(name: str) -> int:
    digits = name[-10:]
    return int(digits) if digits.isdigit() else -1


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
