"""How a master ends with its cluster: the leader tells the others, and they tell their supervisors.

Flink counterpart: the clean-up half of ``ClusterEntrypoint.shutDownAsync``.
"""

from __future__ import annotations

import json
import logging
import time
from pathlib import Path
from typing import Final

from yarnflow.core.cluster_result import RESULT_FILE, ClusterResult
from yarnflow.core.ha.ports import ClusterEnd, LeaderElection
from yarnflow.core.json_codec import to_json
from yarnflow.errors import LeadershipLost, YarnflowError
from yarnflow.process.dirs import write_json

logger = logging.getLogger(__name__)

#: how long the leader of a cluster that has ended waits for the other masters
SHUTDOWN_TIMEOUT_S: Final = 10.0
#: how long it tries to tell them when ZooKeeper does not answer
DECLARE_S: Final = 30.0
_RETRY_S: Final = 0.5


class ClusterEnding:
    """The end of the cluster, as one master sees to it.

    Parameters
    ----------
    cluster_dir : Path
        Where the supervisor looks for the result.
    election : LeaderElection
        Knows the other masters.
    cluster_end : ClusterEnd
        Tells them.
    """

    def __init__(self, cluster_dir: Path, election: LeaderElection, cluster_end: ClusterEnd) -> None:
        self._cluster_dir = cluster_dir
        self._election = election
        self._cluster_end = cluster_end

    def write(self, result: ClusterResult) -> None:
        """Leave the result for the supervisor."""
        write_json(self._cluster_dir / RESULT_FILE, json.loads(to_json(result)))
        logger.info("The cluster ended %s. %s", result.status.name, result.diagnostics)

    def declare(self, result: ClusterResult, *, forget: bool = True) -> None:
        """As leader: tell the other masters, wait for them to leave, and forget the cluster.

        Parameters
        ----------
        forget : bool
            Do so; False = a master that is just being started is not to find a cluster without an end, so
            whoever knows that none is left does it (YARN).
        """
        try:
            self._declare(result)
            self._await_others()
            if forget:
                self._cluster_end.remove_cluster()
        except YarnflowError as error:
            logger.warning("Something of the cluster stays in ZooKeeper: %s", error)
        self.write(result)

    def clear_leftover(self) -> None:
        """Return when a declared end is this cluster's; that of an earlier one is removed.

        The leader that ends a cluster stays until the others have gone, so without it, it is what an
        earlier cluster of the same name has left.

        Raises
        ------
        LeadershipLost
            It is removed; this process, which stood for election in it, must begin anew.
        YarnflowError
            It could not be removed.
        """
        election = self._election
        deadline = time.monotonic() + SHUTDOWN_TIMEOUT_S
        while not election.masters() and time.monotonic() < deadline:
            time.sleep(0.05)
        if len(election.masters()) > 1:
            return
        self._cluster_end.remove_cluster()
        raise LeadershipLost("what the last cluster of this name had left in ZooKeeper is removed")

    def _declare(self, result: ClusterResult) -> None:
        deadline = time.monotonic() + DECLARE_S
        while True:
            try:
                self._cluster_end.declare(result)
                return
            except YarnflowError as error:
                if not error.retryable or isinstance(error, LeadershipLost) or time.monotonic() >= deadline:
                    raise
                logger.warning("%s; trying again", error)
                time.sleep(_RETRY_S)

    def _await_others(self) -> None:
        deadline = time.monotonic() + SHUTDOWN_TIMEOUT_S
        while len(self._election.masters()) > 1 and time.monotonic() < deadline:
            time.sleep(0.05)
