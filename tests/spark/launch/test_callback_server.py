"""Whose connections the server that a JVM calls accepts."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from yarnflow.core.resources.connections import Address, can_tell_owners, find_end
from yarnflow.spark.launch import callback_server
from yarnflow.spark.launch.callback_server import OwnJvmOnly

pytestmark = pytest.mark.skipif(not can_tell_owners(), reason="only Linux tells whose connections are")

#: connects to the port it is told, says hello, and waits for the end of its input
_PEER = (
    "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); "
    "s.sendall(b'hello'); sys.stdin.read()"
)


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_only_connections_of_the_process_are_accepted(
    listening: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    port = listening.getsockname()[1]
    # of the same user, and first in line
    strangers = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
    strangers[0].sendall(b"c\np0\n__repr__\ne\n")
    with subprocess.Popen([sys.executable, "-c", _PEER, str(port)], stdin=subprocess.PIPE) as peer:
        connection, _ = OwnJvmOnly(listening, peer.pid).accept()
        with closing(connection):
            assert connection.recv(5) == b"hello"
    for stranger in strangers:
        with closing(stranger):
            # an end or a reset, but not a word
            try:
                assert stranger.recv(100) == b""
            except ConnectionResetError:
                pass
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 1
    assert f"another process, of user id {os.getuid()}" in warnings[0]


def test_a_connection_whose_owner_cannot_be_looked_up_is_refused(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unreadable(*_: object) -> None:
        # the end of the test: nothing more is to be accepted
        listening.shutdown(socket.SHUT_RDWR)
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(callback_server, "find_end", unreadable)
    with socket.create_connection(listening.getsockname()), pytest.raises(OSError, match="Invalid argument"):
        OwnJvmOnly(listening, os.getpid()).accept()
    assert "cannot be looked up" in caplog.text


def test_a_table_that_misses_the_connection_is_read_again(
    listening: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [None, None]

    def at_last(local: Address, remote: Address) -> object:
        return answers.pop() if answers else find_end(local, remote)

    monkeypatch.setattr(callback_server, "find_end", at_last)
    with socket.create_connection(listening.getsockname()) as own:
        connection, peer = OwnJvmOnly(listening, os.getpid()).accept()
        with closing(connection):
            assert peer == own.getsockname()


def test_a_server_that_waits_ends_when_it_is_shut_down(listening: socket.socket) -> None:
    guarded = OwnJvmOnly(listening, os.getpid())
    errors: list[OSError] = []

    def wait() -> None:
        try:
            guarded.accept()
        except OSError as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    guarded.shutdown(socket.SHUT_RDWR)
    waiting.join()
    assert errors
