"""Who leads, and what outlives a master: the parts of one process, from its configuration.

With ``high-availability.type: zookeeper`` all of them speak over one ZooKeeper session, which the
process's supervisor can close when the process has ended without doing so.  Without, there is one
master, nothing is elected, and what is kept lives as long as the process does, except for
checkpoints.

Flink counterpart: ``HighAvailabilityServicesUtils``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import ha as ha_options
from yarnflow.core.files import FileSystems
from yarnflow.core.ha.ports import (
    ClusterEnd,
    DriverLease,
    FreeLease,
    JobStores,
    LeaderElection,
    LeaderRetrieval,
)
from yarnflow.core.ids import JobId
from yarnflow.core.messages import Fence
from yarnflow.errors import ConfigError
from yarnflow.fs.file_systems import file_systems
from yarnflow.ha.settings import is_highly_available

if TYPE_CHECKING:
    from yarnflow.ha.services import ZooKeeper

#: below the directory of a process's supervisor: one file for each ZooKeeper session
SESSIONS_DIRECTORY: Final = "zookeeper-sessions"
#: a supervisor imports the client when its processes have started, and before one of them is lost
_IMPORT_AFTER_S: Final = 10.0


class HaServices:
    """What one process has of high availability; made by :func:`services_of`.

    Attributes
    ----------
    election, retrieval, cluster_end
        None without high availability.
    """

    def __init__(
        self,
        configuration: Configuration,
        fs_of: FileSystems,
        zookeeper: ZooKeeper | None = None,
        retrieval: LeaderRetrieval | None = None,
        election: LeaderElection | None = None,
        cluster_end: ClusterEnd | None = None,
    ) -> None:
        self._configuration = configuration
        self._fs_of = fs_of
        self._zookeeper = zookeeper
        self.election = election
        self.retrieval = retrieval
        self.cluster_end = cluster_end

    def stores(self, fence: Callable[[], Fence]) -> JobStores:
        """What Dispatcher and JobMasters keep; written under ``fence`` only while that leads."""
        from yarnflow.ha.stores.without_zookeeper import MemoryJobStores

        if self._zookeeper is None:
            return MemoryJobStores(self._fs_of)
        from yarnflow.ha.services import ZooKeeperJobStores

        return ZooKeeperJobStores(
            self._zookeeper, self._fs_of, self._configuration.get(ha_options.STORAGE_DIR), fence
        )

    def lease(self, job_id: JobId) -> DriverLease:
        """The right to write the job's checkpoint directory, not acquired yet."""
        if self._zookeeper is None:
            return FreeLease()
        from yarnflow.ha.services import ZooKeeperLease

        return ZooKeeperLease(self._zookeeper, job_id)

    def close(self) -> None:
        """Give everything back and close the session.  Idempotent."""
        if self.election is not None:
            self.election.close()
        if self.retrieval is not None:
            self.retrieval.close()
        if self._zookeeper is not None:
            self._zookeeper.close()


def services_of(configuration: Configuration, secret: bytes, cluster_dir: Path | None) -> HaServices:
    """Connect this process, as ``high-availability.type`` says.

    Parameters
    ----------
    secret : bytes
        The cluster's; what it keeps in ZooKeeper is protected by it.
    cluster_dir : Path or None
        Directory of the process's supervisor, who finds the session there; None = the process holds
        nothing that anybody waits for.

    Raises
    ------
    ConfigError
        An option that is needed is missing.
    ZooKeeperUnavailable
        No server of the quorum answers.
    """
    fs_of = file_systems()
    if not is_highly_available(configuration):
        return HaServices(configuration, fs_of)
    if not configuration.get(ha_options.STORAGE_DIR):
        raise ConfigError(
            "high-availability.storageDir is not set; with high-availability.type zookeeper it names a "
            "directory that all machines reach (hdfs://…)"
        )
    from yarnflow.ha.services import (
        ZooKeeperClusterEnd,
        ZooKeeperElection,
        ZooKeeperRetrieval,
        ZooKeeperSettings,
        open_zookeeper,
    )

    zookeeper = open_zookeeper(
        ZooKeeperSettings.of(configuration),
        secret,
        None if cluster_dir is None else cluster_dir / SESSIONS_DIRECTORY,
    )
    return HaServices(
        configuration,
        fs_of,
        zookeeper,
        ZooKeeperRetrieval(zookeeper),
        ZooKeeperElection(zookeeper),
        ZooKeeperClusterEnd(zookeeper),
    )


def session_closer(configuration: Configuration, cluster_dir: Path) -> Callable[[int], None]:
    """For a supervisor: ``close(pid)`` ends the session of a process that has ended; it may block.

    So nobody has to wait for the session's time-out before its place is taken.
    """
    if not is_highly_available(configuration):
        return lambda _pid: None
    importer = threading.Timer(_IMPORT_AFTER_S, lambda: __import__("yarnflow.ha.sessions"))
    importer.daemon = True
    importer.start()

    def close(pid: int) -> None:
        from yarnflow.ha.services import ZooKeeperSettings
        from yarnflow.ha.sessions import close_session_of

        close_session_of(cluster_dir / SESSIONS_DIRECTORY, pid, ZooKeeperSettings.of(configuration))

    return close
