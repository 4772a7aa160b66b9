"""Whether this master leads, as its own connection to ZooKeeper tells.

Decides when a master may act as leader: from the moment it holds the latch *and* has raised the
epoch, frozen while its connection is broken, never again once its session is over.  A master that
was revoked ends; the process that is started in its place stands anew.  Never talks to ZooKeeper.

Flink counterparts: ``DefaultLeaderElectionService``, ``ZooKeeperLeaderElectionDriver`` (there a
broken connection revokes unless ``tolerate-suspended-connections``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from yarnflow.core.fsm import Machine, Row, Timestamps, on, stamped
from yarnflow.core.messages import Fence


class Leadership(Enum):
    """What a master is."""

    #: a candidate like the others
    FOLLOWER = "FOLLOWER"
    #: the leader
    GRANTED = "GRANTED"
    #: leader, perhaps: its connection is broken
    SUSPENDED = "SUSPENDED"
    #: leads no more, and never again
    REVOKED = "REVOKED"


L = Leadership


@dataclass(frozen=True, slots=True)
class LeadershipModel:
    """One candidacy."""

    #: new for every process
    leader_id: str
    state: Leadership
    #: time of the last entry of each state, in order of entry
    timestamps: Timestamps[Leadership]
    #: under which it leads, or led; 0 = it never did
    epoch: int = 0
    #: ZooKeeper is there
    connected: bool = True
    #: why it is REVOKED, one line
    reason: str = ""

    @classmethod
    def create(cls, leader_id: str, at_ms: int) -> LeadershipModel:
        """A process that stands for election, connected."""
        return cls(leader_id, L.FOLLOWER, ((L.FOLLOWER, at_ms),))

    @property
    def fence(self) -> Fence | None:
        """What its calls carry; None unless it may act as leader now."""
        return Fence(self.leader_id, self.epoch) if self.state is L.GRANTED else None


# --- events -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Elected:
    """It holds the latch and has raised the epoch to ``epoch``, by a version-checked write."""

    at_ms: int
    epoch: int


@dataclass(frozen=True, slots=True)
class ConnectionSuspended:
    """ZooKeeper does not answer; the session may go on."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class ConnectionRestored:
    """ZooKeeper answers again, in the same session."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class SessionLost:
    """The session is over, and every ephemeral node with it; or the latch's node alone is gone."""

    at_ms: int


LeadershipEvent = Elected | ConnectionSuspended | ConnectionRestored | SessionLost


# --- effects ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Grant:
    """Tell the contender that it leads."""

    fence: Fence


@dataclass(frozen=True, slots=True)
class Freeze:
    """Tell the contender that it may not lead any more, and should decide nothing for good."""


@dataclass(frozen=True, slots=True)
class Thaw:
    """Tell the contender that it led all the time."""


@dataclass(frozen=True, slots=True)
class Revoke:
    """Tell the contender that it leads no more."""

    reason: str


@dataclass(frozen=True, slots=True)
class StandAgain:
    """Enter the election anew: the node of this candidacy is gone."""


LeadershipEffect = Grant | Freeze | Thaw | Revoke | StandAgain
Result = tuple[LeadershipModel, tuple[LeadershipEffect, ...]]
LeadershipRow = Row[LeadershipModel, LeadershipEvent, LeadershipEffect]

# --- functions --------------------------------------------------------------


def _enter(model: LeadershipModel, state: Leadership, at_ms: int) -> LeadershipModel:
    return replace(model, state=state, timestamps=stamped(model.timestamps, state, at_ms))


def _elected(model: LeadershipModel, event: Elected) -> Result:
    model = replace(model, epoch=event.epoch)
    grant = Grant(Fence(model.leader_id, event.epoch))
    if model.connected:
        return _enter(model, L.GRANTED, event.at_ms), (grant,)
    # the connection broke behind the answer
    return _enter(model, L.SUSPENDED, event.at_ms), (grant, Freeze())


def _disconnected(model: LeadershipModel, event: ConnectionSuspended) -> Result:
    return replace(model, connected=False), ()


def _connected(model: LeadershipModel, event: ConnectionRestored) -> Result:
    return replace(model, connected=True), ()


def _suspended(model: LeadershipModel, event: ConnectionSuspended) -> Result:
    return _enter(replace(model, connected=False), L.SUSPENDED, event.at_ms), (Freeze(),)


def _resumed(model: LeadershipModel, event: ConnectionRestored) -> Result:
    return _enter(replace(model, connected=True), L.GRANTED, event.at_ms), (Thaw(),)


def _stands_again(model: LeadershipModel, event: SessionLost) -> Result:
    return model, (StandAgain(),)


def _lost(model: LeadershipModel, event: SessionLost) -> Result:
    return _revoked(model, event.at_ms, "its ZooKeeper session is over")


def _revoked(model: LeadershipModel, at_ms: int, reason: str) -> Result:
    return _enter(replace(model, reason=reason), L.REVOKED, at_ms), (Revoke(reason),)


def _unchanged(model: LeadershipModel, event: LeadershipEvent) -> Result:
    return model, ()


# --- the table --------------------------------------------------------------

_ROWS: Final[tuple[LeadershipRow, ...]] = (
    on(
        L.FOLLOWER,
        Elected,
        _elected,
        L.GRANTED,
        L.SUSPENDED,
        note="it has latch and epoch; SUSPENDED if disconnected since",
    ),
    on(L.FOLLOWER, ConnectionSuspended, _disconnected, L.FOLLOWER, note="a follower decides nothing"),
    on(L.FOLLOWER, ConnectionRestored, _connected, L.FOLLOWER, note="it is still a candidate"),
    on(L.FOLLOWER, SessionLost, _stands_again, L.FOLLOWER, note="its candidacy ended with the session"),
    on(L.GRANTED, ConnectionSuspended, _suspended, L.SUSPENDED, note="another may be elected meanwhile"),
    on(L.GRANTED, ConnectionRestored, _unchanged, L.GRANTED, note="reported twice"),
    on(L.GRANTED, SessionLost, _lost, L.REVOKED, note="another master may be elected"),
    on(L.SUSPENDED, ConnectionSuspended, _unchanged, L.SUSPENDED, note="reported twice"),
    on(L.SUSPENDED, ConnectionRestored, _resumed, L.GRANTED, note="same session, so the latch was held"),
    on(L.SUSPENDED, SessionLost, _lost, L.REVOKED, note="another master may be elected"),
)


def _contradiction(model: LeadershipModel) -> str:
    if model.state in (L.GRANTED, L.SUSPENDED) and model.epoch < 1:
        return f"{model.state.name} without an epoch"
    if model.state is L.GRANTED and not model.connected:
        return "GRANTED without a connection"
    if (model.state is L.REVOKED) is not bool(model.reason):
        return f"{model.state.name} with the reason {model.reason!r}"
    return ""


MACHINE: Final[Machine[LeadershipModel, LeadershipEvent, LeadershipEffect]] = Machine(
    name="Leadership",
    states=Leadership,
    initial=L.FOLLOWER,
    terminal=(L.REVOKED,),
    id_of=lambda model: model.leader_id,
    rows=_ROWS,
    contradiction=_contradiction,
)
