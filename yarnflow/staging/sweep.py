"""Deletes what applications left on the shared file system.

Normally the master deletes its application's directory, or the janitor of the last master of a highly
available cluster; this is for those that could not: killed with everything around them, or submits
that died half-way.  Decides by what YARN says about each application, and when in doubt leaves things
alone, above all those of another YARN that has the same file system.  Runs with every submit.

Flink counterpart: ``YarnClusterDescriptor``'s clean-up of ``.flink/<application id>``.
"""

from __future__ import annotations

import logging
import posixpath
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.core.files import FileStatus, FileSystem
from yarnflow.core.yarn import Application, YarnCluster
from yarnflow.errors import ApplicationNotFound, FileMissing, StorageError, YarnError, YarnflowError
from yarnflow.staging.deployment import ApplicationDirectory
from yarnflow.staging.job_keys import is_elsewhere
from yarnflow.staging.layout import (
    APPLICATION_TAG,
    StagingLayout,
    deployment_tag,
    skein_directory,
)
from yarnflow.staging.masters import Forget, remove_cluster

logger: Final = logging.getLogger(__name__)
#: a client may still read how its application ended
ENDED_FOR_MS: Final = 60_000
#: a submit without application after this time has died
SUBMIT_DIED_MS: Final = 600_000
#: an upload that has not been finished after this time never will be
UPLOAD_DIED_MS: Final = 86_400_000
#: what ZooKeeper has of a cluster is given up when ZooKeeper does not let go of it for so long
FORGET_FOR_MS: Final = 86_400_000


def sweep(
    fs: FileSystem,
    layout: StagingLayout,
    cluster: YarnCluster,
    user: str,
    now_ms: int,
    forget: Forget,
    yarn_cluster: str = "",
) -> list[str]:
    """Delete what ended applications and died submits left; never raises for YARN or the file system.

    Parameters
    ----------
    fs : FileSystem
    layout : StagingLayout
    cluster : YarnCluster
    user : str
        Whose applications these are.
    now_ms : int
    forget : callable
        Deletes what a highly available cluster has in ZooKeeper.
    yarn_cluster : str
        Which YARN ``cluster`` is; empty = there is no other.

    Returns
    -------
    list of str
        Deleted paths.
    """
    deleted: list[str] = []
    try:
        clusters, others = _leftovers(fs, layout, cluster, user, now_ms, yarn_cluster)
    except (StorageError, YarnError) as error:
        logger.warning("leftovers in %s%s are not looked for now: %s", fs.uri, layout.root, error)
        return deleted
    for status in clusters:
        too_old = now_ms - status.modified_ms > FORGET_FOR_MS
        try:
            deleted += remove_cluster(
                fs, layout, status.name, _give_up(forget) if too_old else forget
            )
        except YarnflowError as error:
            logger.warning("%s%s stays for now: %s", fs.uri, status.path, error)
    for path in others:
        try:
            if fs.delete(path):
                deleted.append(path)
        except StorageError as error:
            logger.warning("%s%s stays for now: %s", fs.uri, path, error)
    if deleted:
        logger.info("deleted what ended applications left: %s", ", ".join(deleted))
    return deleted


def _give_up(forget: Forget) -> Forget:
    def try_to_forget(options: Configuration, secret: str) -> None:
        try:
            forget(options, secret)
        except YarnflowError as error:
            logger.warning(
                "cluster %s stays in ZooKeeper: %s", options.get(cluster_options.CLUSTER_ID), error
            )

    return try_to_forget


def _leftovers(
    fs: FileSystem,
    layout: StagingLayout,
    cluster: YarnCluster,
    user: str,
    now_ms: int,
    yarn_cluster: str,
) -> tuple[list[FileStatus], list[str]]:
    """Directories of clusters, and paths of anything else."""
    directories = fs.list(layout.applications)
    skein_parent = posixpath.dirname(skein_directory(fs.home(), "-"))
    skein = {status.name: status for status in fs.list(skein_parent)}
    old_ms = now_ms - UPLOAD_DIED_MS
    uploads = [status.path for status in fs.list(layout.uploads) if status.modified_ms < old_ms]
    # of masters that were killed while they wrote
    uploads += [
        status.path
        for status in fs.list(layout.latest_states)
        if status.path.endswith(".tmp") and status.modified_ms < old_ms
    ]
    if not directories and not skein:
        return [], uploads
    # after the listing, so that an application whose directory is listed is seen
    applications = cluster.applications(tag=APPLICATION_TAG, user=user)
    clusters = [
        status
        for status in directories
        if _abandoned(fs, layout, cluster, applications, status, now_ms, yarn_cluster)
    ]
    known = {application.application_id: application for application in applications}
    others = [
        status.path
        for application_id, status in skein.items()
        if (
            _ended(known[application_id], now_ms)
            if application_id in known
            else status.modified_ms < old_ms and _never_submitted(cluster, applications, application_id)
        )
    ]
    return clusters, uploads + others


def _never_submitted(
    cluster: YarnCluster, applications: Sequence[Application], application_id: str
) -> bool:
    """Whether an id is from this YARN, but of no application: its submit was killed half-way."""
    # the time stamp of the ResourceManager that gave the id; another YARN's is another
    own = {_time_stamp(application.application_id) for application in applications}
    if _time_stamp(application_id) not in own:
        return False
    try:
        cluster.application(application_id)
    except ApplicationNotFound:
        return True
    return False


def _time_stamp(application_id: str) -> str:
    return application_id.rpartition("_")[0]


def _abandoned(
    fs: FileSystem,
    layout: StagingLayout,
    cluster: YarnCluster,
    applications: Sequence[Application],
    status: FileStatus,
    now_ms: int,
    yarn_cluster: str,
) -> bool:
    """Whether nobody needs an application's directory any more."""
    deployment_id = status.name
    own = [found for found in applications if deployment_tag(deployment_id) in found.tags]
    if own:
        return all(_ended(application, now_ms) for application in own)
    if now_ms - status.modified_ms <= SUBMIT_DIED_MS:
        return False
    # YARN does not list it: it was never submitted, is long forgotten, is hidden by access rules, or it is
    # another YARN's
    directory = ApplicationDirectory(fs, layout, deployment_id)
    elsewhere = is_elsewhere(_yarn_cluster_of(directory), yarn_cluster)
    connection = directory.read_connection()
    if connection is not None:
        with suppress(ApplicationNotFound):
            return _ended(cluster.application(connection.application_id), now_ms)
    if elsewhere:
        return False
    # it may have been that old when it was listed, and a slow submit may be filling it by now
    latest = fs.status(status.path)
    return latest is not None and now_ms - latest.modified_ms > SUBMIT_DIED_MS


def _yarn_cluster_of(directory: ApplicationDirectory) -> str:
    """Where it was to be submitted; empty for what never came so far."""
    try:
        return directory.read_deployment().yarn_cluster
    except FileMissing:
        return ""


def _ended(application: Application, now_ms: int) -> bool:
    return application.state.ended and now_ms - application.finished_ms > ENDED_FOR_MS
