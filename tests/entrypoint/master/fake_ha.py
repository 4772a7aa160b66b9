"""High availability of several JobManagers in one process: who leads is what a test says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from yarnflow.core.cluster_result import ClusterResult
from yarnflow.core.ha.ports import JobStores, LeaderContender, MasterInfo
from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.entrypoint.ha_services import SingleMasterServices
from yarnflow.errors import LeadershipLost
from yarnflow.fs.file_systems import file_systems
from yarnflow.testing.ha import FakeLeaderRetrieval
from yarnflow.testing.stores import FakeJobStores


class FakeElection:
    """One candidacy; :meth:`grant` makes it the leader."""

    def __init__(self, cluster: FakeHaCluster) -> None:
        self.cluster = cluster
        self.contender: LeaderContender | None = None
        self.fence = Fence("", 0)

    def start(self, contender: LeaderContender, me: MasterInfo) -> None:
        """Stand."""
        contender.standing_by()
        self.contender = contender
        self.cluster.present.append((self, me))

    def publish(self, leader: LeaderInfo) -> None:
        """Tell all."""
        self.cluster.retrieval.set_leader(leader)

    def confirm(self, fence: Fence) -> None:
        """As the newest grant of all says."""
        self.cluster.asked.append(fence)
        if fence.epoch < self.cluster.epoch:
            raise LeadershipLost("another one leads")

    def masters(self) -> Sequence[MasterInfo]:
        """All there are."""
        return [me for _election, me in self.cluster.present]

    def on_masters(self, listener: Callable[[Sequence[MasterInfo]], None]) -> None:
        """Nobody listens."""

    def close(self) -> None:
        """Go."""
        self.cluster.present = [other for other in self.cluster.present if other[0] is not self]

    def grant(self, epoch: int) -> None:
        """It leads."""
        assert self.contender is not None
        self.cluster.epoch = epoch
        self.contender.granted(Fence(f"leader-{epoch}", epoch))


class FakeHaCluster:
    """What ZooKeeper would keep."""

    def __init__(self) -> None:
        self.stores = FakeJobStores(highly_available=True)
        self.retrieval = FakeLeaderRetrieval()
        self.present: list[tuple[FakeElection, MasterInfo]] = []
        self.ended: ClusterResult | None = None
        self.removed = False
        self.epoch = 0
        #: who asked whether it leads
        self.asked: list[Fence] = []
        self._listeners: list[Callable[[ClusterResult], None]] = []

    def declare(self, result: ClusterResult) -> None:
        """Tell all."""
        self.ended = result
        for listener in self._listeners:
            listener(result)

    def on_ended(self, listener: Callable[[ClusterResult], None]) -> None:
        """Now or later."""
        self._listeners.append(listener)
        if self.ended is not None:
            listener(self.ended)

    def remove_cluster(self) -> None:
        """Forget."""
        self.removed = True
        self.ended = None


class FakeHa(SingleMasterServices):
    """Of one process; without a cluster it is a single master."""

    def __init__(self, cluster: FakeHaCluster | None = None) -> None:
        super().__init__(file_systems())
        self._stores = FakeJobStores()
        self.candidacy: FakeElection | None = None
        if cluster is not None:
            self._stores = cluster.stores
            self.election = self.candidacy = FakeElection(cluster)
            self.retrieval, self.cluster_end = cluster.retrieval, cluster

    def stores(self, fence: Callable[[], Fence]) -> JobStores:
        """The same for all."""
        return self._stores
