"""Where a TaskManager learns the address of a single master; with several, ZooKeeper knows it.

Every address may be a leftover, so the master there is asked each time whether it leads.  Nobody tells
of a new one: it is looked for when the one before does not answer any more.  Flink counterpart:
``StandaloneLeaderRetrievalService``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.core.ha.ports import PolledRetrieval
from yarnflow.core.messages import LeaderInfo
from yarnflow.core.ports import DispatcherGateway
from yarnflow.errors import ResourceError, RpcError
from yarnflow.process.dirs import read_json

logger = logging.getLogger(__name__)

#: the Dispatcher at an address
Dispatcher = Callable[[str], DispatcherGateway]


class MasterAt(PolledRetrieval):
    """Implements :class:`yarnflow.core.ha.ports.LeaderRetrieval` for an application on YARN.

    Parameters
    ----------
    address : str
        As skein's key-value store says.
    dispatcher : callable
    """

    def __init__(self, address: str, dispatcher: Dispatcher) -> None:
        self._address = address
        self._dispatcher = dispatcher

    @property
    def may_change(self) -> bool:
        """The application's containers end with its master."""
        return False

    def leader(self) -> LeaderInfo | None:
        """The master, with its fence."""
        return self._dispatcher(self._address).leader()


class StandaloneMaster(PolledRetrieval):
    """Implements :class:`yarnflow.core.ha.ports.LeaderRetrieval` for a cluster that is not on YARN.

    There are two places to look: what a JobManager of the same machine left in the cluster directory, and
    ``jobmanager.rpc.address`` with ``jobmanager.rpc.port``.  The first may be a leftover: it counts only
    while its process lives and answers.

    Parameters
    ----------
    cluster_dir : Path
    configuration : Configuration
    dispatcher : callable
    """

    def __init__(self, cluster_dir: Path, configuration: Configuration, dispatcher: Dispatcher) -> None:
        self._cluster_dir = cluster_dir
        self._configuration = configuration
        self._dispatcher = dispatcher

    @property
    def may_change(self) -> bool:
        """One that is started in its place knows nothing of its jobs."""
        return False

    def leader(self) -> LeaderInfo | None:
        """The master that answers.

        Raises
        ------
        RpcError
            None does.
        ResourceError
            There is no address to ask.
        """
        published = self._published_address()
        if published is not None:
            try:
                return self._dispatcher(published).leader()
            except RpcError as error:
                if not self._one_port():
                    raise
                logger.info("Looking for the JobManager elsewhere: %s", error)
        return self._dispatcher(self._configured_address()).leader()

    def _published_address(self) -> str | None:
        published = read_json(self._cluster_dir / "jobmanager.json")
        if published is None or not published.get("address"):
            return None
        return str(published["address"]) if process_exists(int(published.get("pid", 0))) else None

    def _one_port(self) -> bool:
        port = self._configuration.get(cluster_options.JOBMANAGER_RPC_PORT)
        return port.isdigit() and int(port) != 0

    def _configured_address(self) -> str:
        host = self._configuration.get(cluster_options.JOBMANAGER_RPC_ADDRESS)
        port = self._configuration.get(cluster_options.JOBMANAGER_RPC_PORT)
        if not self._one_port():
            raise ResourceError(
                f"jobmanager.rpc.port is {port!r}: a TaskManager needs the one port the JobManager serves at"
            )
        return f"{host}:{port}"


def process_exists(pid: int) -> bool:
    """Whether a process of that number lives on this machine."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # somebody else's
    return True
