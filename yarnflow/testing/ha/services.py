"""High availability of several masters in one process."""

from __future__ import annotations

from collections.abc import Callable

from yarnflow.core.ha.ports import JobStores
from yarnflow.core.messages import Fence
from yarnflow.entrypoint.ha_services import SingleMasterServices
from yarnflow.fs.file_systems import file_systems
from yarnflow.testing.ha.cluster_end import FakeClusterEnd
from yarnflow.testing.ha.election import ElectionState, FakeElection
from yarnflow.testing.stores import FakeJobStores


class FakeHaCluster:
    """What ZooKeeper keeps of one cluster, shared by the services of its masters."""

    def __init__(self) -> None:
        self.stores = FakeJobStores(highly_available=True)
        self.election = ElectionState()
        self.end = FakeClusterEnd()


class FakeHaServices(SingleMasterServices):
    """:class:`~yarnflow.entrypoint.ha_services.HaServices` of one master.

    Parameters
    ----------
    cluster : FakeHaCluster, optional
        Default: it is the only master, and leads as soon as it is started.

    Attributes
    ----------
    candidacy : FakeElection, optional
        By which the test lets this master lead; None for a single master.
    """

    def __init__(self, cluster: FakeHaCluster | None = None) -> None:
        super().__init__(file_systems())
        self._stores = FakeJobStores()
        self.candidacy: FakeElection | None = None
        if cluster is not None:
            self._stores = cluster.stores
            self.election = self.candidacy = FakeElection(cluster.election)
            self.retrieval, self.cluster_end = cluster.election.retrieval, cluster.end

    def stores(self, fence: Callable[[], Fence]) -> JobStores:
        """Those of the cluster, whatever the fence."""
        return self._stores
