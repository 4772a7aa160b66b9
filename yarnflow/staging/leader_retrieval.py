"""Where clients learn the address of a cluster on YARN: from its directory on HDFS.

The master that leads publishes itself there.  Flink counterpart: the address that YARN's report of an
application carries.
"""

from __future__ import annotations

from yarnflow.core.ha.ports import PolledRetrieval
from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.staging.deployment import ApplicationDirectory


class DeploymentRetrieval(PolledRetrieval):
    """Implements :class:`yarnflow.core.ha.ports.LeaderRetrieval`.

    Parameters
    ----------
    directory : ApplicationDirectory
        Of the cluster.
    """

    def __init__(self, directory: ApplicationDirectory) -> None:
        self._directory = directory
        self._may_change = False

    @property
    def may_change(self) -> bool:
        """As the leader said that was read last."""
        return self._may_change

    def leader(self) -> LeaderInfo | None:
        """Whoever published itself last; it may be gone.

        Raises
        ------
        StorageError
            HDFS does not answer, or the file cannot be understood.
        """
        connection = self._directory.read_connection()
        if connection is None:
            return None
        self._may_change = connection.highly_available
        return LeaderInfo(
            fence=Fence(connection.leader_id, connection.epoch),
            address=connection.address,
            version="",
            cluster_id=self._directory.deployment_id,
            web_address=connection.web_address,
        )
