"""The masters of one cluster: applications with one deployment's tag, and what they leave behind.

Without high availability there is one.  Decides when a cluster is over, which is when the last of
its masters has ended, and in which order its remains are deleted: the directory that says what
there is comes last, so that whoever is interrupted can begin again.  Flink counterpart:
``ZooKeeperMultipleComponentLeaderElectionHaServices.closeAndCleanupAllData``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import ha as ha_options
from yarnflow.core.files import FileSystem
from yarnflow.core.yarn import Application, ApplicationState, YarnCluster
from yarnflow.errors import FileMissing
from yarnflow.staging.deployment import ApplicationDirectory, Deployment
from yarnflow.staging.layout import DEPLOYMENT_FILE, StagingLayout, deployment_tag

LIVE_STATES: Final = tuple(state for state in ApplicationState if not state.ended)
#: ``(options of the cluster, its secret)``: delete what it has in ZooKeeper
Forget = Callable[[Configuration, str], None]


def live_masters(cluster: YarnCluster, deployment_id: str, user: str = "") -> Sequence[Application]:
    """Applications of a cluster that have not ended, oldest first.  Raises YarnError."""
    found = cluster.applications(tag=deployment_tag(deployment_id), user=user, states=LIVE_STATES)
    return [application for application in found if not application.state.ended]


def remove_cluster(fs: FileSystem, layout: StagingLayout, deployment_id: str, forget: Forget) -> list[str]:
    """Delete everything of a cluster whose masters have all ended, except retained checkpoints.

    Parameters
    ----------
    forget : callable
        Called for a highly available cluster, before anything else.

    Returns
    -------
    list of str
        Deleted paths.

    Raises
    ------
    YarnflowError
        Something could not be deleted; its directory is still there then.
    """
    directory = ApplicationDirectory(fs, layout, deployment_id)
    places = []
    try:
        deployment = directory.read_deployment()
        if deployment.highly_available:
            forget(options_of(deployment), directory.read_secret())
            places.append(storage_of(deployment))
    except FileMissing:
        pass  # a submit that died early, or somebody else is at it
    return [path for path in (*places, directory.path) if fs.delete(path)]


def options_of(deployment: Deployment) -> Configuration:
    """The options of a cluster's processes."""
    return Configuration.from_dict(deployment.configuration, DEPLOYMENT_FILE)


def storage_of(deployment: Deployment) -> str:
    """Path of a highly available cluster's directory for what ZooKeeper has pointers to."""
    options = options_of(deployment)
    storage = urlsplit(options.get(ha_options.STORAGE_DIR)).path.rstrip("/")
    return f"{storage}/{options.get(cluster_options.CLUSTER_ID)}"
