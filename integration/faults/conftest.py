"""A Hadoop with three ZooKeepers of its own: the faults here stop its daemons."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.hadoop import HadoopCluster


@pytest.fixture(scope="session")
def coordinated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HadoopCluster]:
    """HDFS, YARN and a quorum of ZooKeeper.  Where it cannot be started, its tests fail."""
    running = os.environ.get("YARNFLOW_TEST_HADOOP")
    if running:  # one that scripts/hadoop started there, to try a test again and again
        yield HadoopCluster(Path(running))
        return
    cluster = HadoopCluster.start(tmp_path_factory.mktemp("coordinated"), zookeepers=3)
    yield cluster
    cluster.stop()
