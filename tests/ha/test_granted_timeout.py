"""kazoo itself against a server that grants a shorter session than it is asked for."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

from yarnflow.ha.connection import ZooKeeperConnection
from yarnflow.ha.settings import ZooKeeperSettings

CLOSE_SESSION = -11


@contextmanager
def server(granted_ms: int) -> Iterator[str]:
    """Grants each session; answers every request with success and nothing else."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        thread = threading.Thread(target=serve, args=(listening, granted_ms), daemon=True)
        thread.start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
    thread.join()


def serve(listening: socket.socket, granted_ms: int) -> None:
    connection, _ = listening.accept()
    with connection:
        packet(connection)
        session = struct.pack(">iiqi", 0, granted_ms, 4711, 16) + b"p" * 16 + b"\0"
        # in two parts, as a network may deliver them
        connection.sendall(struct.pack(">i", len(session)) + session[:2])
        connection.sendall(session[2:])
        operation = 0
        while operation != CLOSE_SESSION:
            xid, operation = struct.unpack_from(">ii", packet(connection))
            connection.sendall(struct.pack(">iiqi", 16, xid, 1, 0))


def packet(connection: socket.socket) -> bytes:
    (length,) = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))
    return connection.recv(length, socket.MSG_WAITALL)


def test_the_session_lasts_as_long_as_the_server_says() -> None:
    with server(granted_ms=4_000) as quorum:
        settings = ZooKeeperSettings(quorum, "/yarnflow/c", session_timeout_ms=10_000, protected=False)
        connection = ZooKeeperConnection(settings, b"secret", None, lambda _: None)
        assert connection.session_timeout_ms == 10_000
        connection.open()
        try:
            assert (connection.session_id, connection.session_timeout_ms) == (4711, 4_000)
        finally:
            connection.close()
