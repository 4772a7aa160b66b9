"""The parts of high availability where there is one master at a time: an election with one candidate.

What follows from a grant is the same with several masters.  Flink counterparts:
``StandaloneLeaderElection``, ``StandaloneLeaderRetrievalService``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from yarnflow.core.cluster_result import ClusterResult
from yarnflow.core.ha.ports import LeaderContender, MasterInfo
from yarnflow.core.messages import Fence, LeaderInfo


class SingleMasterRetrieval:
    """Implements :class:`yarnflow.core.ha.ports.LeaderRetrieval`: the leader never changes.

    Parameters
    ----------
    leader : LeaderInfo, optional
        None until it is published.
    """

    def __init__(self, leader: LeaderInfo | None = None) -> None:
        self._leader = leader
        self._listeners: list[Callable[[LeaderInfo | None], None]] = []

    @property
    def may_change(self) -> bool:
        """There is one master."""
        return False

    def leader(self) -> LeaderInfo | None:
        """The only one there will be."""
        return self._leader

    def on_leader(self, listener: Callable[[LeaderInfo | None], None]) -> None:
        """Call ``listener`` now, and when the master is published."""
        self._listeners.append(listener)
        listener(self._leader)

    def published(self, leader: LeaderInfo) -> None:
        """The master serves."""
        self._leader = leader
        for listener in self._listeners:
            listener(leader)

    def close(self) -> None:
        """Nothing is held."""


class SingleMasterElection:
    """Implements :class:`yarnflow.core.ha.ports.LeaderElection`: granted at once, and for good.

    Parameters
    ----------
    leader_id : str
        New for every process.
    retrieval : SingleMasterRetrieval
        Of this process; told of its leader.
    epoch : int
        Higher than that of all masters which have run the same jobs before.
    """

    def __init__(self, leader_id: str, retrieval: SingleMasterRetrieval, epoch: int = 1) -> None:
        self._fence = Fence(leader_id, epoch)
        self._retrieval = retrieval
        self._masters: tuple[MasterInfo, ...] = ()
        self._listeners: list[Callable[[Sequence[MasterInfo]], None]] = []

    def start(self, contender: LeaderContender, me: MasterInfo) -> None:
        """Grant; the candidate is never a standby."""
        self._masters = (me,)
        for listener in self._listeners:
            listener(self._masters)
        contender.granted(self._fence)

    def publish(self, leader: LeaderInfo) -> None:
        """Tell this process; others learn the address from its supervisor or its files."""
        self._retrieval.published(leader)

    def confirm(self, fence: Fence) -> None:
        """Nobody else can lead."""

    def masters(self) -> Sequence[MasterInfo]:
        """This one, once it stands."""
        return self._masters

    def on_masters(self, listener: Callable[[Sequence[MasterInfo]], None]) -> None:
        """Call ``listener`` now and when this master stands."""
        self._listeners.append(listener)
        listener(self._masters)

    def close(self) -> None:
        """Nobody follows."""
        self._masters = ()


class SingleMasterEnd:
    """Implements :class:`yarnflow.core.ha.ports.ClusterEnd`: there is no other master to tell."""

    def declare(self, result: ClusterResult) -> None:
        """Nobody has to know."""

    def on_ended(self, listener: Callable[[ClusterResult], None]) -> None:
        """Nobody else declares it."""

    def remove_cluster(self) -> None:
        """Nothing is kept."""
