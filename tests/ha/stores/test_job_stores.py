"""The contract of the stores, kept by each of them."""

from __future__ import annotations

import pytest

from tests.ha.conftest import OpenSession, raise_epoch
from tests.ha.fake_kazoo import Ensemble
from tests.ha.stores.contract import JobStoresContract
from yarnflow.core.files import FileSystem
from yarnflow.core.ha.ports import JobStores
from yarnflow.core.messages import Fence
from yarnflow.ha.services import ZooKeeperJobStores
from yarnflow.ha.stores.without_zookeeper import MemoryJobStores
from yarnflow.testing.file_system import MemoryFileSystem
from yarnflow.testing.stores import FakeJobStores


@pytest.fixture
def fs() -> MemoryFileSystem:
    return MemoryFileSystem()


class TestFake(JobStoresContract):
    @pytest.fixture
    def stores(self) -> JobStores:
        return FakeJobStores()


class TestWithoutZooKeeper(JobStoresContract):
    @pytest.fixture
    def stores(self, fs: MemoryFileSystem) -> JobStores:
        def fs_of(uri: str) -> tuple[FileSystem, str]:
            return fs, uri.removeprefix("hdfs://memory:8020")

        return MemoryJobStores(fs_of)


class TestZooKeeper(JobStoresContract):
    @pytest.fixture
    def stores(self, fs: MemoryFileSystem, session: OpenSession) -> JobStores:
        def fs_of(uri: str) -> tuple[FileSystem, str]:
            return fs, uri.removeprefix("hdfs://memory:8020")

        zookeeper = session(Ensemble())
        fence = Fence("leader", raise_epoch(zookeeper))
        return ZooKeeperJobStores(zookeeper, fs_of, "hdfs://memory:8020/ha", lambda: fence)
