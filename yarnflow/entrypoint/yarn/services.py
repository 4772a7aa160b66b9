"""HDFS and YARN as a container sees them; imports what that needs, which takes its time."""

from __future__ import annotations

import os
from dataclasses import dataclass

from yarnflow.config.hadoop.conf import HadoopConf
from yarnflow.core.files import FileSystem
from yarnflow.core.yarn import YarnCluster
from yarnflow.fs.file_systems import open_file_system
from yarnflow.staging.deployment import Deployment
from yarnflow.yarn.web.resource_manager import ResourceManagerRest


@dataclass(frozen=True, slots=True)
class ContainerServices:
    """What a container may use without a JVM."""

    conf: HadoopConf
    fs: FileSystem
    cluster: YarnCluster


def container_services(deployment: Deployment) -> ContainerServices:
    """Set everything up; nothing is connected yet.

    Raises
    ------
    YarnUnavailable
        Hadoop's configuration did not come with the container, or names no file system that can be used.
    """
    conf = HadoopConf.load(os.environ)
    return ContainerServices(
        conf,
        open_file_system(conf, deployment.user),
        ResourceManagerRest(conf.resource_manager_web_addresses(), deployment.user),
    )
