"""The targets of the ``yarnflow`` command: those of a client, and a cluster in the command's own process."""

from __future__ import annotations

from typing import Final

from yarnflow.client import targets
from yarnflow.client.cluster import ClusterConnection
from yarnflow.client.targets import CLIENT_TARGETS, SubmitSurroundings, Target
from yarnflow.config.configuration import Configuration


def _local(configuration: Configuration, surroundings: SubmitSurroundings) -> ClusterConnection:
    from yarnflow.entrypoint.standalone.local import LocalCluster

    return LocalCluster.start(configuration, driver_stdout_fd=surroundings.driver_stdout_fd)


LOCAL: Final = Target("local", "a cluster of its own on this machine", _local, owned=True)
TARGETS: Final = (LOCAL, *CLIENT_TARGETS)


def find_target(name: str) -> Target:
    """Look a target up.

    Raises
    ------
    InvalidOption
        There is none of that name; the message lists those there are.
    """
    return targets.find_target(name, TARGETS)
