"""Elections that a test decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from yarnflow.core.ha.ports import LeaderContender, MasterInfo
from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.errors import LeadershipLost
from yarnflow.testing.ha.leader_retrieval import FakeLeaderRetrieval


class ElectionState:
    """What the candidacies of one cluster share, as ZooKeeper keeps it.

    Attributes
    ----------
    retrieval : FakeLeaderRetrieval
        Says who published itself last.
    candidates : list
        Candidacies that have begun and are not closed, with their masters.
    epoch : int
        Of the newest grant.
    confirmed : list of Fence
        Those that asked whether they lead, in order.
    """

    def __init__(self) -> None:
        self.retrieval = FakeLeaderRetrieval()
        self.candidates: list[tuple[FakeElection, MasterInfo]] = []
        self.epoch = 0
        self.confirmed: list[Fence] = []


class FakeElection:
    """:class:`~yarnflow.core.ha.ports.LeaderElection` that :meth:`grant` decides.

    Parameters
    ----------
    state : ElectionState, optional
        Shared with the other masters of the cluster; default: there are none.
    """

    def __init__(self, state: ElectionState | None = None) -> None:
        self.state = state or ElectionState()
        self.contender: LeaderContender | None = None
        self._listeners: list[Callable[[Sequence[MasterInfo]], None]] = []

    def start(self, contender: LeaderContender, me: MasterInfo) -> None:
        """Stand by until :meth:`grant`."""
        contender.standing_by()
        self.contender = contender
        self.state.candidates.append((self, me))

    def publish(self, leader: LeaderInfo) -> None:
        """Let the shared retrieval say it."""
        self.state.retrieval.set_leader(leader)

    def confirm(self, fence: Fence) -> None:
        """Raise LeadershipLost if there was a newer grant to any master."""
        self.state.confirmed.append(fence)
        if fence.epoch < self.state.epoch:
            raise LeadershipLost("another one leads")

    def masters(self) -> Sequence[MasterInfo]:
        """Those of all candidacies, in order of their start."""
        return [master for _election, master in self.state.candidates]

    def on_masters(self, listener: Callable[[Sequence[MasterInfo]], None]) -> None:
        """Call ``listener`` at each :meth:`tell_masters`."""
        self._listeners.append(listener)

    def tell_masters(self) -> None:
        """Tell of the candidacies there are now; changes are not told by themselves."""
        for listener in self._listeners:
            listener(self.masters())

    def close(self) -> None:
        """Be a candidate no more."""
        self.state.candidates = [each for each in self.state.candidates if each[0] is not self]

    def grant(self, epoch: int) -> None:
        """Make it the leader under a new epoch; the one that led is not told."""
        assert self.contender is not None
        self.state.epoch = epoch
        self.contender.granted(Fence(f"leader-{epoch}", epoch))


def election_with(*masters: MasterInfo) -> FakeElection:
    """An election in which these masters are candidates already, in other processes."""
    state = ElectionState()
    state.candidates = [(FakeElection(state), master) for master in masters]
    return FakeElection(state)
