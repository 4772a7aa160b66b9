"""WebHDFS when something is wrong: which NameNode, what is tried again, which error in which words."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fs.test_file_systems import conf
from tests.fs.webhdfs_server import WebHdfsServer, webhdfs_server
from yarnflow.errors import FileMissing, StorageDenied, StorageError, StorageUnavailable
from yarnflow.fs.webhdfs import WebHdfsFileSystem
from yarnflow.testing.file_system import MemoryFileSystem

ROOT = "/user/ann"
SAFE_MODE = (403, "SafeModeException", "Cannot create directory /x. Name node is in safe mode.\nThe reported")
STANDBY = (403, "StandbyException", "Operation category READ is not supported in state standby")


@pytest.fixture
def memory() -> MemoryFileSystem:
    return MemoryFileSystem()


@pytest.fixture
def server(memory: MemoryFileSystem) -> Iterator[WebHdfsServer]:
    with webhdfs_server(memory) as server:
        yield server


@pytest.fixture
def pauses() -> list[float]:
    return []


@pytest.fixture
def fs(server: WebHdfsServer, pauses: list[float]) -> Iterator[WebHdfsFileSystem]:
    fs = WebHdfsFileSystem(conf(server.url), "ann", sleep=pauses.append)
    yield fs
    fs.close()


@pytest.fixture
def unused_url() -> Iterator[str]:
    """Nobody listens there, and nobody else can begin to."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def one_line(error: pytest.ExceptionInfo[StorageError]) -> str:
    text = str(error.value)
    assert "\n" not in text and "user.name" not in text
    return text


def test_nobody_there(unused_url: str, pauses: list[float]) -> None:
    fs = WebHdfsFileSystem(conf(unused_url), "ann", sleep=pauses.append)
    with pytest.raises(StorageUnavailable) as error:
        fs.read(f"{ROOT}/file")
    assert one_line(error) == (
        f"cannot read hdfs://ns{ROOT}/file: {unused_url}: Connection refused; start HDFS, or check "
        "HADOOP_CONF_DIR, which is /etc/hadoop/conf"
    )
    assert pauses == [0.0, 0.5, 1.5]


def test_none_of_several_there(unused_url: str, server: WebHdfsServer, pauses: list[float]) -> None:
    fs = WebHdfsFileSystem(conf(unused_url, server.url), "ann", sleep=pauses.append)
    server.close()
    with pytest.raises(StorageUnavailable) as error:
        fs.status(ROOT)
    assert unused_url in one_line(error) and server.url in one_line(error)
    # long enough for one of them to become active
    assert sum(pauses) > 10


@pytest.mark.parametrize(
    "operation",
    [
        lambda fs: fs.make_directory(f"{ROOT}/new"),
        lambda fs: fs.write(f"{ROOT}/file", b"1"),
        lambda fs: fs.create(f"{ROOT}/file", b"1"),
        lambda fs: fs.rename(ROOT, "/other"),
        lambda fs: fs.delete(ROOT),
    ],
)
def test_safe_mode(
    fs: WebHdfsFileSystem,
    server: WebHdfsServer,
    pauses: list[float],
    operation: Callable[[WebHdfsFileSystem], object],
) -> None:
    changing = ("MKDIRS", "CREATE", "STORE", "RENAME", "DELETE")
    server.faults = {name: [SAFE_MODE] * 10 for name in changing}
    with pytest.raises(StorageUnavailable) as error:
        operation(fs)
    assert "safe mode" in one_line(error)
    assert one_line(error).endswith("check with: hdfs dfsadmin -safemode get")
    # it takes minutes or an operator; no use to wait here
    assert not pauses


def test_safe_mode_that_may_end_by_itself(fs: WebHdfsFileSystem, server: WebHdfsServer) -> None:
    server.faults["MKDIRS"] = [(403, "RetriableException", "SafeModeException: Name node is in safe mode.")]
    with pytest.raises(StorageUnavailable, match="-safemode get"):
        fs.make_directory(f"{ROOT}/new")


@pytest.mark.parametrize(
    "answer, kind, said",
    [
        ((403, "AccessControlException", "Permission denied: user=ann"), StorageDenied, "as user ann"),
        ((403, "DSQuotaExceededException", "The DiskSpace quota of /user"), StorageDenied, "quota raised"),
        (
            (403, "IOException", "could only be written to 0 of the 1 minReplication nodes."),
            StorageUnavailable,
            "hdfs dfsadmin -report",
        ),
        (
            (403, "IOException", "Failed to find datanode, suggest to check cluster health."),
            StorageUnavailable,
            "no DataNode takes data",
        ),
        ((401, "", "<html>"), StorageDenied, "Kerberos"),
        ((500, "", "<html>broken</html>"), StorageUnavailable, "dfs.webhdfs.enabled"),
        ((404, "", "<html>"), StorageUnavailable, "dfs.namenode.http-address"),
        ((403, "", '{"RemoteException": 5}'), StorageUnavailable, "as no WebHDFS does"),
        ((400, "IllegalArgumentException", ""), StorageError, "log of the NameNode"),
        ((404, "FileNotFoundException", "Parent is not there"), FileMissing, "Parent is not there"),
    ],
)
def test_answers(
    fs: WebHdfsFileSystem,
    server: WebHdfsServer,
    answer: tuple[int, str, str],
    kind: type[StorageError],
    said: str,
) -> None:
    server.faults["CREATE"] = [answer]
    with pytest.raises(kind) as error:
        fs.write(f"{ROOT}/file", b"1")
    assert type(error.value) is kind
    assert f"hdfs://ns{ROOT}/file" in one_line(error) and said in one_line(error)


def never(seconds: float) -> None:
    pytest.fail(f"slept {seconds} s")


def test_a_standby_is_passed_over(server: WebHdfsServer, memory: MemoryFileSystem) -> None:
    memory.write(f"{ROOT}/file", b"1")
    with webhdfs_server(memory) as standby:
        standby.faults["OPEN"] = [STANDBY] * 10
        fs = WebHdfsFileSystem(conf(standby.url, server.url), "ann", sleep=never)
        assert fs.read(f"{ROOT}/file") == b"1"
        assert fs.read(f"{ROOT}/file") == b"1"
        fs.close()
        # the second time, the active one was asked at once
        assert standby.requests == ["OPEN"]


def test_a_stopped_name_node_is_passed_over(unused_url: str, server: WebHdfsServer) -> None:
    fs = WebHdfsFileSystem(conf(unused_url, server.url), "ann", sleep=never)
    assert fs.create(f"{ROOT}/file", b"1")
    assert fs.read(f"{ROOT}/file") == b"1"
    fs.close()


def test_no_name_node_is_active(fs: WebHdfsFileSystem, server: WebHdfsServer) -> None:
    server.faults["GETFILESTATUS"] = [STANDBY] * 10
    with pytest.raises(StorageUnavailable) as error:
        fs.status(ROOT)
    assert server.url in one_line(error) and "haadmin -getAllServiceState" in one_line(error)


def test_a_name_node_becomes_active(
    fs: WebHdfsFileSystem, server: WebHdfsServer, pauses: list[float]
) -> None:
    server.faults["GETFILESTATUS"] = [STANDBY, STANDBY]
    assert fs.status(ROOT) is not None
    assert len(pauses) == 2


def test_a_name_node_that_hangs_is_waited_for_once(server: WebHdfsServer, pauses: list[float]) -> None:
    server.faults["GETFILESTATUS"] = ["drop"] * 10
    times = iter([0.0, 30.0])
    fs = WebHdfsFileSystem(conf(server.url), "ann", sleep=pauses.append, monotonic=lambda: next(times))
    with pytest.raises(StorageUnavailable, match=server.url):
        fs.status(ROOT)
    fs.close()
    assert server.requests == ["GETFILESTATUS"] and not pauses


@pytest.mark.parametrize("fault", ["drop", "lose"])
@pytest.mark.parametrize("step", ["CREATE", "STORE", "RENAME"])
@pytest.mark.parametrize("exists", [False, True])
def test_create_with_a_broken_connection(
    fs: WebHdfsFileSystem,
    server: WebHdfsServer,
    memory: MemoryFileSystem,
    fault: str,
    step: str,
    exists: bool,
) -> None:
    if exists:
        memory.write(f"{ROOT}/file", b"of another")
    server.faults[step] = [fault]
    assert fs.create(f"{ROOT}/file", b"mine") is not exists
    assert memory.read(f"{ROOT}/file") == (b"of another" if exists else b"mine")
    assert memory.paths(ROOT) == [f"{ROOT}/file"]


@pytest.mark.parametrize("fault", ["drop", "lose"])
@pytest.mark.parametrize("step", ["CREATE", "STORE", "RENAME"])
def test_write_with_a_broken_connection(
    fs: WebHdfsFileSystem, server: WebHdfsServer, memory: MemoryFileSystem, fault: str, step: str
) -> None:
    memory.write(f"{ROOT}/file", b"old")
    server.faults[step] = [fault]
    fs.write(f"{ROOT}/file", b"new")
    assert memory.read(f"{ROOT}/file") == b"new"
    assert memory.paths(ROOT) == [f"{ROOT}/file"]


@pytest.mark.parametrize("fault", ["drop", "lose"])
def test_rename_with_a_broken_connection(
    fs: WebHdfsFileSystem, server: WebHdfsServer, memory: MemoryFileSystem, fault: str
) -> None:
    memory.write(f"{ROOT}/a", b"1")
    server.faults["RENAME"] = [fault]
    assert fs.rename(f"{ROOT}/a", f"{ROOT}/b")
    assert memory.paths(ROOT) == [f"{ROOT}/b"]


def test_a_failed_write_leaves_nothing(
    fs: WebHdfsFileSystem, server: WebHdfsServer, memory: MemoryFileSystem
) -> None:
    server.faults["RENAME"] = [(403, "AccessControlException", "Permission denied")]
    with pytest.raises(StorageDenied, match=f"cannot write hdfs://ns{ROOT}/file as user ann"):
        fs.write(f"{ROOT}/file", b"1")
    assert not memory.paths(ROOT)


def test_a_data_node_that_cannot_be_reached(
    fs: WebHdfsFileSystem, server: WebHdfsServer, unused_url: str
) -> None:
    server.data_node = unused_url
    with pytest.raises(StorageUnavailable) as error:
        fs.write(f"{ROOT}/file", b"1")
    assert f"DataNode {unused_url}: Connection refused" in one_line(error)
    assert "HADOOP_CONF_DIR" not in one_line(error)


def test_only_uploads_have_the_replication(server: WebHdfsServer, tmp_path: Path) -> None:
    local = tmp_path / "file"
    local.write_bytes(b"1")
    fs = WebHdfsFileSystem(conf(server.url), "ann", replication=7)
    fs.upload(str(local), f"{ROOT}/uploaded")
    fs.write(f"{ROOT}/written", b"1")
    fs.close()
    created = [parameters for parameters in server.parameters if parameters["op"] == "CREATE"]
    assert [parameters.get("replication") for parameters in created] == ["7", None]


def test_a_file_that_shrinks_while_it_is_uploaded(
    fs: WebHdfsFileSystem, server: WebHdfsServer, memory: MemoryFileSystem, tmp_path: Path
) -> None:
    local = tmp_path / "file"
    local.write_bytes(b"12")
    server.faults["CREATE"] = [lambda: local.write_bytes(b"1")]
    with pytest.raises(StorageError, match="became shorter"):
        fs.upload(str(local), f"{ROOT}/file")
    assert not memory.paths(ROOT) and "DELETE" in server.requests


def test_a_file_that_vanishes_while_it_is_uploaded(
    fs: WebHdfsFileSystem, server: WebHdfsServer, tmp_path: Path
) -> None:
    local = tmp_path / "file"
    local.write_bytes(b"12")
    server.faults["CREATE"] = [local.unlink]
    with pytest.raises(StorageError, match="cannot read .*file: No such file"):
        fs.upload(str(local), f"{ROOT}/file")


def test_proxies_are_not_asked(
    fs: WebHdfsFileSystem, monkeypatch: pytest.MonkeyPatch, unused_url: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", unused_url)
    monkeypatch.setenv("http_proxy", unused_url)
    assert fs.status(ROOT) is not None


def test_kerberos_is_refused() -> None:
    plain = conf("http://host:9870")
    secure = {**plain.properties, "hadoop.security.authentication": "kerberos"}
    with pytest.raises(StorageUnavailable, match="not supported yet"):
        WebHdfsFileSystem(replace(plain, properties=secure), "ann")


def test_content_is_not_logged(fs: WebHdfsFileSystem, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        fs.write(f"{ROOT}/secret", b"f00dfeed")
        fs.read(f"{ROOT}/secret")
    assert "secret" in caplog.text and "f00dfeed" not in caplog.text
