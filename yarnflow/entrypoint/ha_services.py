"""Who leads, and what outlives a master: the parts of one process, from its configuration.

With ``high-availability.type: zookeeper`` all of them speak over one ZooKeeper session, which the
process's supervisor can close when the process has ended without doing so.  Without, there is one
master, an election with one candidate, and what is kept lives as long as the process does, except
for checkpoints.

Flink counterpart: ``HighAvailabilityServicesUtils``.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

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
from yarnflow.ha.single_master import SingleMasterElection, SingleMasterEnd, SingleMasterRetrieval

if TYPE_CHECKING:
    from yarnflow.ha.services import ZooKeeper

#: below the directory of a process's supervisor: one file for each ZooKeeper session
SESSIONS_DIRECTORY: Final = "zookeeper-sessions"
#: YARN's id of a container has the number of the application's attempt
_ATTEMPT: Final = re.compile(r"container_(?:e\d+_)?\d+_\d+_(\d+)_\d+")
#: a supervisor imports the client when its processes have started, and before one of them is lost
_IMPORT_AFTER_S: Final = 10.0


class HaServices(Protocol):
    """What one process has of high availability; made by :func:`services_of`."""

    election: LeaderElection
    retrieval: LeaderRetrieval
    cluster_end: ClusterEnd

    def stores(self, fence: Callable[[], Fence]) -> JobStores:
        """What Dispatcher and JobMasters keep; written under ``fence`` only while that leads."""

    def lease(self, job_id: JobId) -> DriverLease:
        """The right to write the job's checkpoint directory, not acquired yet."""

    def close(self) -> None:
        """Give everything back and close the session.  Idempotent."""


class SingleMasterServices:
    """:class:`HaServices` of a cluster with one master.

    Parameters
    ----------
    retrieval : LeaderRetrieval, optional
        Where this process learns the master's address; default: it is the master.
    epoch : int
        Of this process, if it is the master.
    """

    def __init__(
        self, fs_of: FileSystems, retrieval: LeaderRetrieval | None = None, epoch: int = 1
    ) -> None:
        own = SingleMasterRetrieval()
        self._fs_of = fs_of
        self.election: LeaderElection = SingleMasterElection(secrets.token_hex(16), own, epoch)
        self.retrieval: LeaderRetrieval = retrieval or own
        self.cluster_end: ClusterEnd = SingleMasterEnd()

    def stores(self, fence: Callable[[], Fence]) -> JobStores:
        """In memory, as long as the process lives."""
        from yarnflow.ha.stores.without_zookeeper import MemoryJobStores

        return MemoryJobStores(self._fs_of)

    def lease(self, job_id: JobId) -> DriverLease:
        """Nobody else could have it."""
        return FreeLease()

    def close(self) -> None:
        """No session is held."""
        self.election.close()
        self.retrieval.close()


class ZooKeeperServices:
    """:class:`HaServices` over one ZooKeeper session."""

    def __init__(self, configuration: Configuration, fs_of: FileSystems, zookeeper: ZooKeeper) -> None:
        from yarnflow.ha.services import (
            GrantedEpochs,
            ZooKeeperClusterEnd,
            ZooKeeperElection,
            ZooKeeperRetrieval,
            cluster_directory,
        )

        self._storage_dir = configuration.get(ha_options.STORAGE_DIR)
        self._fs_of = fs_of
        self._zookeeper = zookeeper
        self.retrieval: LeaderRetrieval = ZooKeeperRetrieval(zookeeper)
        granted = GrantedEpochs(fs_of, cluster_directory(self._storage_dir, zookeeper.settings))
        self.election: LeaderElection = ZooKeeperElection(zookeeper, granted)
        self.cluster_end: ClusterEnd = ZooKeeperClusterEnd(zookeeper)

    def stores(self, fence: Callable[[], Fence]) -> JobStores:
        """In ZooKeeper and on the file system."""
        from yarnflow.ha.services import ZooKeeperJobStores

        return ZooKeeperJobStores(self._zookeeper, self._fs_of, self._storage_dir, fence)

    def lease(self, job_id: JobId) -> DriverLease:
        """An ephemeral node."""
        from yarnflow.ha.services import ZooKeeperLease

        return ZooKeeperLease(self._zookeeper, job_id)

    def close(self) -> None:
        """Withdraw, and close the session."""
        self.election.close()
        self.retrieval.close()
        self._zookeeper.close()


def services_of(
    configuration: Configuration,
    secret: bytes,
    cluster_dir: Path | None,
    single_master: LeaderRetrieval | None = None,
    container_id: str = "",
) -> HaServices:
    """Connect this process, as ``high-availability.type`` says.

    Parameters
    ----------
    secret : bytes
        The cluster's; what it keeps in ZooKeeper is protected by it.
    cluster_dir : Path or None
        Directory of the process's supervisor, who finds the session there; None = the process holds
        nothing that anybody waits for.
    single_master : LeaderRetrieval, optional
        Where this process learns the address of a single master; default: it is the master.
    container_id : str
        YARN's, of a master: the application's next attempt runs the same jobs, and sinks have to know that it
        comes later.

    Raises
    ------
    ConfigError
        An option that is needed is missing.
    ZooKeeperUnavailable
        No server of the quorum answers.
    """
    fs_of = file_systems()
    if not is_highly_available(configuration):
        attempt = _ATTEMPT.fullmatch(container_id)
        return SingleMasterServices(fs_of, single_master, int(attempt[1]) if attempt else 1)
    if not configuration.get(ha_options.STORAGE_DIR):
        raise ConfigError(
            "high-availability.storageDir is not set; with high-availability.type zookeeper it names a "
            "directory that all machines reach (hdfs://…)"
        )
    from yarnflow.ha.services import ZooKeeperSettings, open_zookeeper

    zookeeper = open_zookeeper(
        ZooKeeperSettings.of(configuration),
        secret,
        None if cluster_dir is None else cluster_dir / SESSIONS_DIRECTORY,
    )
    return ZooKeeperServices(configuration, fs_of, zookeeper)


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
