from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.yarn.fakes import Answer, FakeDaemon, daemon
from yarnflow.errors import FileMissing, YarnError
from yarnflow.yarn.web.container_logs import ContainerLogs, LogFile, parse_log

CONTAINER = "container_1_01_000002"
BASE = f"/ws/v1/node/containers/{CONTAINER}/logs"


class GrowingLog:
    """``taskmanager.log`` as a NodeManager of Hadoop 3.5 sends it."""

    def __init__(self, fake: FakeDaemon, content: bytes) -> None:
        self.content = content
        #: appended between the list of files and the read
        self.grows_by = b""
        self.sizes: list[str] = []
        fake.answers[BASE] = self._list
        fake.answers[f"{BASE}/taskmanager.log"] = self._read

    def _list(self, query: dict[str, str]) -> Any:
        listed = [
            {"fileName": "taskmanager.log", "fileSize": str(len(self.content))},
            {"fileName": "prelaunch.err", "fileSize": "0"},
        ]
        self.content += self.grows_by
        return {"containerLogsInfo": {"containerLogInfo": listed, "logAggregationType": "LOCAL"}}

    def _read(self, query: dict[str, str]) -> Any:
        size = int(query.get("size", len(self.content)))
        self.sizes.append(query.get("size", ""))
        part = self.content[:size] if size >= 0 else self.content[size:]
        head = f"Container: {CONTAINER} on node1:1\nLogAggregationType: LOCAL\n==\nLogType:taskmanager.log\n"
        head += f"LogLastModifiedTime:Sat Nov 21\nLogLength:{len(self.content)}\nLogContents:\n"
        return Answer(head.encode() + part + b"End of LogType:taskmanager.log.This log file belongs to\n")


@pytest.fixture
def node() -> Iterator[FakeDaemon]:
    with daemon() as fake:
        yield fake


@pytest.fixture
def logs() -> Iterator[ContainerLogs]:
    reader = ContainerLogs("ada")
    yield reader
    reader.close()


def test_files_are_listed(node: FakeDaemon, logs: ContainerLogs) -> None:
    GrowingLog(node, b"12345")
    assert logs.files(node.address, CONTAINER) == [LogFile("prelaunch.err", 0), LogFile("taskmanager.log", 5)]


def test_one_file_is_listed_as_an_object(node: FakeDaemon, logs: ContainerLogs) -> None:
    one = {"fileName": "a.log", "fileSize": "3"}
    node.answers[BASE] = {"containerLogsInfo": {"containerLogInfo": one}}
    assert logs.files(node.address, CONTAINER) == [LogFile("a.log", 3)]


def test_a_file_is_followed_without_gaps_while_it_grows(node: FakeDaemon, logs: ContainerLogs) -> None:
    log = GrowingLog(node, b"line 1\n")
    log.grows_by = "zwölf\n".encode()
    seen = b""
    for _ in range(5):
        seen += logs.read(node.address, CONTAINER, "taskmanager.log", len(seen))
    log.grows_by = b""
    seen += logs.read(node.address, CONTAINER, "taskmanager.log", len(seen))
    assert seen == log.content
    assert logs.read(node.address, CONTAINER, "taskmanager.log", len(seen)) == b""


def test_a_file_that_grows_by_more_than_the_slack(node: FakeDaemon, logs: ContainerLogs) -> None:
    log = GrowingLog(node, b"begin\n")
    log.grows_by = b"x" * 100_000
    assert logs.read(node.address, CONTAINER, "taskmanager.log", 2) == log.content[2:]


def test_a_large_file_is_read_in_parts(node: FakeDaemon, logs: ContainerLogs) -> None:
    log = GrowingLog(node, bytes(range(256)) * 40)
    seen = b""
    while part := logs.read(node.address, CONTAINER, "taskmanager.log", len(seen), max_bytes=1000):
        assert len(part) <= 1000
        seen += part
    assert seen == log.content
    # the beginning is asked for as a beginning
    assert log.sizes[0] == "1000"


def test_the_end_of_a_file(node: FakeDaemon, logs: ContainerLogs) -> None:
    GrowingLog(node, b"1234567890")
    assert logs.tail(node.address, CONTAINER, "taskmanager.log", 3) == b"890"
    assert logs.tail(node.address, CONTAINER, "taskmanager.log", 300) == b"1234567890"


def test_missing_files_and_containers(node: FakeDaemon, logs: ContainerLogs) -> None:
    GrowingLog(node, b"")
    with pytest.raises(FileMissing, match="no log file other.log"):
        logs.read(node.address, CONTAINER, "other.log")
    assert logs.files(node.address, "container_9") == []
    with pytest.raises(FileMissing):
        logs.tail(node.address, "container_9", "x", 3)


def test_a_container_that_does_not_run_yet_has_no_logs(node: FakeDaemon, logs: ContainerLogs) -> None:
    """As Hadoop 3.5 answers while its files are localized."""
    node.answers[BASE] = Answer({"RemoteException": {"message": "HTTP 404 Not Found"}}, 503)
    assert logs.files(node.address, CONTAINER) == []
    node.answers[BASE] = Answer({"RemoteException": {"message": "shutting down"}}, 503)
    with pytest.raises(YarnError, match="503 shutting down"):
        logs.files(node.address, CONTAINER)


def test_something_else_than_a_log() -> None:
    with pytest.raises(YarnError, match="no log file: '<html>'"):
        parse_log(b"<html>", 0)


def test_logs_may_contain_yarns_own_headings() -> None:
    content = b"a\nLogLength:3\nLogContents:\nb"
    head = b"Container: c\nLogType:x\nLogLength:%d\nLogContents:\n" % len(content)
    answer = head + content + b"End of LogType:x\n"
    assert parse_log(answer, 0) == (content, 0, len(content))
