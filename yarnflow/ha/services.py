"""The parts of high availability over ZooKeeper, for composition roots.

Flink counterpart: ``ZooKeeperLeaderElectionHaServices``.
"""

from __future__ import annotations

from collections.abc import Callable

from yarnflow.core.files import FileSystems
from yarnflow.core.ids import JobId
from yarnflow.core.messages import Fence
from yarnflow.ha.client import ZooKeeper, open_zookeeper
from yarnflow.ha.cluster_end import ZooKeeperClusterEnd
from yarnflow.ha.driver_lease import ZooKeeperLease
from yarnflow.ha.election import ZooKeeperElection
from yarnflow.ha.leases import ZooKeeperLeases
from yarnflow.ha.retrieval import ZooKeeperRetrieval
from yarnflow.ha.settings import ZooKeeperSettings
from yarnflow.ha.stores.bodies import Bodies, cluster_directory
from yarnflow.ha.stores.checkpoints import ZooKeeperCheckpoints
from yarnflow.ha.stores.collected_files import CollectedFiles
from yarnflow.ha.stores.incarnations import GrantedEpochs
from yarnflow.ha.stores.jobs import ZooKeeperJobGraphs, ZooKeeperJobKeys, ZooKeeperResults
from yarnflow.ha.stores.latest_states import FileLatestStates

__all__ = [
    "GrantedEpochs",
    "ZooKeeper",
    "ZooKeeperClusterEnd",
    "ZooKeeperElection",
    "ZooKeeperJobStores",
    "ZooKeeperLease",
    "ZooKeeperRetrieval",
    "ZooKeeperSettings",
    "cluster_directory",
    "open_zookeeper",
]


class ZooKeeperJobStores:
    """Implements :class:`yarnflow.core.ha.ports.JobStores`.

    Parameters
    ----------
    zookeeper : ZooKeeper
        This master's session.
    fs_of : callable
        Opens the file system of a URI.
    storage_dir : str
        ``high-availability.storageDir``.
    fence : callable
        The leadership under which is written.
    """

    def __init__(
        self, zookeeper: ZooKeeper, fs_of: FileSystems, storage_dir: str, fence: Callable[[], Fence]
    ) -> None:
        self._zookeeper = zookeeper
        self._fs_of = fs_of
        self._storage_dir = storage_dir
        self._fence = fence

        def bodies(kind: str) -> Bodies:
            return Bodies(zookeeper, fs_of, storage_dir, kind, fence)

        self.job_graphs = ZooKeeperJobGraphs(zookeeper, bodies("jobgraphs"), fence)
        self.results = ZooKeeperResults(bodies("results"), zookeeper.settings.max_results)
        self.job_keys = ZooKeeperJobKeys(zookeeper, fence)
        self.leases = ZooKeeperLeases(zookeeper, fence)

    @property
    def highly_available(self) -> bool:
        """Another master may take over."""
        return True

    def checkpoints(self, job_id: JobId, directory: str) -> ZooKeeperCheckpoints:
        return ZooKeeperCheckpoints(
            self._zookeeper, self._fs_of, self._storage_dir, self._fence, job_id, directory
        )

    def checkpoint_directory(self, job_id: JobId) -> str:
        return self.checkpoints(job_id, "").recorded_directory()

    def collected(self, directory: str) -> CollectedFiles:
        return CollectedFiles(self._fs_of, directory)

    def latest_states(self, root: str) -> FileLatestStates:
        return FileLatestStates(self._fs_of, root, lambda: self._fence().epoch)
