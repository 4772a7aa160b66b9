"""YARN as tests use it, and their input."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from integration.conftest import Commands, wait_until
from integration.hadoop import HadoopCluster
from integration.yarn.jobs import Yarn, put_flights
from integration.yarn.masters import Masters


@pytest.fixture
def yarn(hadoop: HadoopCluster, yarnflow: Commands) -> Iterator[Yarn]:
    """The cluster for one test, which must leave nothing on it."""
    cluster = Yarn(hadoop, yarnflow)
    yield cluster
    try:
        cluster.assert_nothing_left()
    finally:
        for application_id in cluster.live():
            hadoop.kill_application(application_id)
        cluster.drop_leftovers()
        # jobs that did not finish keep it
        cluster.drop_retained_state()


@pytest.fixture
def masters(yarn: Yarn) -> Iterator[Masters]:
    """For one test, which must leave nothing in ZooKeeper either."""
    zookeeper = KazooClient(hosts=yarn.hadoop.zookeeper, timeout=60)
    zookeeper.start()
    found = Masters(yarn, zookeeper)
    try:
        yield found
        yarn.assert_nothing_left()
        assert not yarn.below(f"{yarn.home}/.yarnflow/ha")
        # by the key of a job that was stopped its savepoint is found
        left = yarn.retained_state()
        assert not left, "state of a job that is FINISHED"
        wait_until(lambda: not found.clusters(), "ZooKeeper to be empty")
    finally:
        zookeeper.stop()
        zookeeper.close()


@pytest.fixture(scope="session")
def flights(hadoop: HadoopCluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Directory on HDFS with the flights of the example, one file per month."""
    scratch = tmp_path_factory.mktemp("flights")
    return put_flights(hadoop, "/tests/flights", scratch)


@pytest.fixture(scope="session")
def texts(hadoop: HadoopCluster) -> str:
    """Directory on HDFS with the input of the word count script."""
    hadoop.hdfs.put("/tests/texts/a.txt", b"to be or not to be\nthat is the question\n")
    hadoop.hdfs.put("/tests/texts/b.txt", b"To be\n")
    return "/tests/texts"


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A program whose job runs until it is ended."""
    program = tmp_path / "endless.py"
    program.write_text(
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.appName('endless').getOrCreate()\n"
        "rate = spark.readStream.format('rate').option('rowsPerSecond', 10).load()\n"
        "rate.writeStream.format('noop').start().awaitTermination()\n"
    )
    return program
