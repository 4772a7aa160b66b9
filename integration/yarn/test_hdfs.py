"""The file system adapter, the staging directory and job keys on a real HDFS."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.hadoop import HadoopCluster
from integration.spark.shared_jvm import shared_session
from tests.fs.contract import FileSystemContract
from tests.patience import PATIENCE
from yarnflow.config.hadoop.conf import HadoopConf
from yarnflow.core.checkpoint.ownership import writable_by_others
from yarnflow.core.files import FileSystem
from yarnflow.core.yarn import Visibility
from yarnflow.errors import StorageDenied, StorageUnavailable
from yarnflow.fs.webhdfs import WebHdfsFileSystem
from yarnflow.process.clock import SystemClock
from yarnflow.spark.file_owners import FileOwners
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.staging.cache import ContentCache
from yarnflow.staging.job_keys import JobKeys, KeyHolder, KeyTaken
from yarnflow.staging.layout import StagingLayout, prepare

PARENT = "/tests-hdfs"


@pytest.fixture
def connect(hadoop: HadoopCluster) -> Iterator[Callable[[str], WebHdfsFileSystem]]:
    """Opens the cluster's HDFS for a user."""
    opened: list[WebHdfsFileSystem] = []

    def open_for(user: str) -> WebHdfsFileSystem:
        opened.append(WebHdfsFileSystem(HadoopConf.load(hadoop.env()), user))
        return opened[-1]

    yield open_for
    for fs in opened:
        fs.close()


@pytest.fixture
def fs(hadoop: HadoopCluster, connect: Callable[[str], WebHdfsFileSystem]) -> WebHdfsFileSystem:
    """As the user who started the cluster, and may do everything."""
    return connect(HadoopConf.load(hadoop.env()).user({}))


@pytest.fixture
def root(fs: WebHdfsFileSystem) -> Iterator[str]:
    """An empty directory of the test's own."""
    path = f"{PARENT}/{uuid.uuid4().hex}"
    fs.make_directory(path, permission=0o755)
    yield path
    fs.delete(PARENT)


class TestHdfs(FileSystemContract):
    """The same contract as all implementations."""


@pytest.mark.gate
def test_somebody_else(
    connect: Callable[[str], WebHdfsFileSystem], fs: FileSystem, root: str, tmp_path: Path
) -> None:
    ann = connect("ann")
    assert ann.home() == "/user/ann"
    fs.write(f"{root}/secret", b"x", permission=0o600)
    local = tmp_path / "large"
    with local.open("wb") as file:
        # large enough that the refusal comes while it is still being sent
        file.truncate(64 << 20)
    attempts: list[Callable[[], object]] = [
        lambda: ann.read(f"{root}/secret"),
        lambda: ann.write(f"{root}/file", b""),
        lambda: ann.create(f"{root}/file", b""),
        lambda: ann.upload(str(local), f"{root}/file"),
        lambda: ann.rename(f"{root}/secret", f"{root}/file"),
        lambda: ann.delete(f"{root}/secret"),
        lambda: ann.make_directory(f"{root}/directory"),
        lambda: prepare(ann, StagingLayout("/user/ann/.yarnflow"), "ann"),
    ]
    for attempt in attempts:
        with pytest.raises(StorageDenied) as error:
            attempt()
        assert "as user ann: Permission denied" in str(error.value) and "\n" not in str(error.value)
    assert [status.path for status in fs.list(root)] == [f"{root}/secret"]


def test_safe_mode(hadoop: HadoopCluster, fs: FileSystem, root: str) -> None:
    fs.write(f"{root}/file", b"1")
    hadoop.safe_mode(True)
    try:
        attempts: list[Callable[[], object]] = [
            lambda: fs.write(f"{root}/file", b"2"),
            lambda: fs.create(f"{root}/other", b""),
            lambda: fs.make_directory(f"{root}/directory"),
            lambda: fs.rename(f"{root}/file", f"{root}/other"),
            lambda: fs.delete(f"{root}/file"),
        ]
        for attempt in attempts:
            with pytest.raises(StorageUnavailable, match="safe mode.*hdfs dfsadmin -safemode get"):
                attempt()
        assert fs.read(f"{root}/file") == b"1"
    finally:
        hadoop.safe_mode(False)
    fs.write(f"{root}/file", b"2")


def test_replication_of_uploads(hadoop: HadoopCluster, fs: FileSystem, root: str, tmp_path: Path) -> None:
    local = tmp_path / "file"
    local.write_bytes(b"1")
    conf = HadoopConf.load(hadoop.env())
    more = WebHdfsFileSystem(conf, conf.user({}), replication=3)
    more.upload(str(local), f"{root}/file")
    more.close()
    assert hadoop.hdfs.status(f"{root}/file")["replication"] == 3


def test_the_cache(hadoop: HadoopCluster, fs: FileSystem, root: str, tmp_path: Path) -> None:
    layout = StagingLayout(f"{root}/staging")
    prepare(fs, layout, HadoopConf.load(hadoop.env()).user({}))
    local = tmp_path / "x.zip"
    local.write_bytes(b"content")
    cache = ContentCache(fs, layout, tmp_path / "hashes.json")
    first, second = cache.put(local, "x.zip"), cache.put(local, "x.zip")
    assert (first.uploaded_bytes, second.uploaded_bytes) == (7, 0)
    assert first.resource == second.resource
    assert first.resource.visibility is Visibility.PUBLIC
    status = hadoop.hdfs.status(first.resource.source.removeprefix(fs.uri))
    assert (status["length"], status["modificationTime"]) == (7, first.resource.modified_ms)
    assert not fs.list(layout.uploads)


def test_many_clients_want_one_key(
    hadoop: HadoopCluster, connect: Callable[[str], WebHdfsFileSystem], root: str
) -> None:
    user = HadoopConf.load(hadoop.env()).user({})
    layout = StagingLayout(root)
    clients = [JobKeys(connect(user), layout, SystemClock()) for _ in range(4)]
    barrier = threading.Barrier(len(clients))
    found: list[KeyTaken | KeyHolder] = []

    def take(keys: JobKeys, name: str, generation: int) -> None:
        barrier.wait(PATIENCE.thread_s)
        # the one that took it before is dead
        found.append(keys.take("flights 100%", name, name, lambda holder: holder.generation == generation))

    for generation in (1, 2, 3):
        found.clear()
        threads = [
            threading.Thread(target=take, args=(keys, f"{generation}.{number}", generation))
            for number, keys in enumerate(clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE.thread_s)
        assert [one for one in found if isinstance(one, KeyTaken)] == [KeyTaken(generation)]
        holders = {one.deployment_id for one in found if isinstance(one, KeyHolder)}
        assert len(found) == len(clients) and len(holders) == 1
        assert clients[0].set_application("flights 100%", generation, f"application_{generation}")


@pytest.mark.gate
def test_who_could_have_written_is_what_the_name_node_says(
    hadoop: HadoopCluster, fs: FileSystem, connect: Callable[[str], WebHdfsFileSystem], root: str
) -> None:
    uri = f"{HadoopConf.load(hadoop.env()).default_fs}{root}"
    trees = {uri: ("a/file",)}
    fs.make_directory(f"{root}/a")
    fs.write(f"{root}/a/file", b"")
    with shared_session("local[1]") as session:
        owners = FileOwners(HadoopFiles(session))
        assert writable_by_others(owners, trees) == ""
        owners.set_mode(f"{uri}/a/file", 0o620)
        assert writable_by_others(owners, trees) == f"{uri}/a/file is writable by others (rw--w----)"
        owners.set_mode(f"{uri}/a/file", 0o600)
        owners.set_mode(f"{uri}/a", 0o777)
        assert writable_by_others(owners, trees) == f"{uri}/a is writable by others (rwxrwxrwx)"
        connect("ann").make_directory(f"{root}/a/of-ann")
        owners.set_mode(f"{uri}/a", 0o700)
        found = writable_by_others(owners, {f"{uri}/a": ("of-ann",)})
        assert found.startswith(f"{uri}/a/of-ann belongs to ann, not to ")
        # above it everybody may exchange what there is
        owners.set_mode(uri, 0o777)
        assert writable_by_others(owners, {f"{uri}/a": ("file",)}).startswith(f"{uri}, above it, is writable")
        owners.set_mode(uri, 0o1777)
        assert writable_by_others(owners, {f"{uri}/a": ("file",)}) == ""
