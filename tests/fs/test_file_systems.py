"""The contract of file systems, on each implementation, and which one a URI is on."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.config.hadoop_directory import hadoop_environ
from tests.fs.contract import FileSystemContract
from tests.fs.webhdfs_server import webhdfs_server
from yarnflow.config.hadoop.conf import HadoopConf
from yarnflow.core.files import FileSystem
from yarnflow.errors import ConfigError, StorageDenied, YarnUnavailable
from yarnflow.fs.file_systems import file_systems, open_file_system
from yarnflow.fs.local import LocalFileSystem
from yarnflow.fs.webhdfs import WebHdfsFileSystem
from yarnflow.testing.file_system import MemoryFileSystem


class TestInMemory(FileSystemContract):
    @pytest.fixture
    def fs(self) -> FileSystem:
        return MemoryFileSystem()

    @pytest.fixture
    def root(self, fs: FileSystem) -> str:
        fs.make_directory("/user/ann/root")
        return "/user/ann/root"


class TestLocal(FileSystemContract):
    @pytest.fixture
    def fs(self) -> FileSystem:
        return LocalFileSystem()

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        root = tmp_path / "root"
        root.mkdir()
        return str(root)


class TestWebHdfs(FileSystemContract):
    @pytest.fixture
    def fs(self) -> Iterator[FileSystem]:
        with webhdfs_server(MemoryFileSystem()) as server:
            fs = WebHdfsFileSystem(conf(server.url), "ann")
            yield fs
            fs.close()

    @pytest.fixture
    def root(self, fs: FileSystem) -> str:
        fs.make_directory("/user/ann/root")
        return "/user/ann/root"


def conf(*urls: str) -> HadoopConf:
    properties = {"fs.defaultFS": "hdfs://ns", "dfs.nameservices": "ns"}
    properties["dfs.ha.namenodes.ns"] = ",".join(f"nn{number}" for number, _ in enumerate(urls))
    for number, url in enumerate(urls):
        properties[f"dfs.namenode.http-address.ns.nn{number}"] = url.removeprefix("http://")
    return HadoopConf(Path("/etc/hadoop/conf"), properties)


def test_a_local_directory_that_is_not_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(source: str, target: str, **directories: int) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", target)

    # whoever runs the test
    monkeypatch.setattr(os, "replace", deny)
    with pytest.raises(StorageDenied, match=f"cannot write {tmp_path}/file: Permission denied; use another"):
        LocalFileSystem().write(f"{tmp_path}/file", b"")
    assert not list(tmp_path.iterdir())


def test_the_default_file_system_decides() -> None:
    local = open_file_system(HadoopConf(Path("/conf"), {"fs.defaultFS": "file:///"}), "ann")
    assert isinstance(local, LocalFileSystem)
    hdfs = open_file_system(HadoopConf(Path("/conf"), {"fs.defaultFS": "hdfs://host:8020/"}), "ann")
    assert isinstance(hdfs, WebHdfsFileSystem) and hdfs.uri == "hdfs://host:8020"
    with pytest.raises(YarnUnavailable, match="s3a://bucket"):
        open_file_system(HadoopConf(Path("/conf"), {"fs.defaultFS": "s3a://bucket"}), "ann")


def test_files_of_this_machine(tmp_path: Path) -> None:
    fs_of = file_systems()
    name = f"{tmp_path}/a b%20c#d?ü:"
    for uri in (name, f"file://{name}", f"file:{name}"):
        found, path = fs_of(uri)
        assert path == name and found.uri == "file://"
    assert fs_of("/x")[0] is fs_of("file:///y")[0]
    with pytest.raises(ConfigError, match="only hdfs://"):
        fs_of("s3://bucket/x")


def test_files_of_the_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    with pytest.raises(YarnUnavailable, match="HADOOP_CONF_DIR is not set"):
        file_systems()("hdfs://nn:8020/x")
    for name, value in hadoop_environ(tmp_path, "hdfs://nn:8020").items():
        monkeypatch.setenv(name, value)
    fs_of = file_systems()
    for uri in ("hdfs://nn:8020/x#/y", "hdfs:///x#/y"):
        found, path = fs_of(uri)
        assert (found.uri, path) == ("hdfs://nn:8020", "/x#/y")
    with pytest.raises(ConfigError, match="the cluster's file system is hdfs://nn:8020"):
        fs_of("hdfs://other:8020/x")
