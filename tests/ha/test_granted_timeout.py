"""kazoo itself against servers of the test: one grants a short session, another has lost its data."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import pairwise

from tests.patience import PATIENCE
from yarnflow.ha.connection import Connection, ZooKeeperConnection
from yarnflow.ha.settings import ZooKeeperSettings

EXISTS, CLOSE_SESSION, NO_NODE = 3, -11, -101
LAST_CHANGE = 1000


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


class EmptiedServer:
    """Loses its data after the first session: refuses who has seen more changes, and knows no session."""

    def __init__(self, listening: socket.socket, granted_ms: int) -> None:
        self._listening = listening
        self._granted_ms = granted_ms
        #: change that was seen, and session, of each attempt to connect
        self.attempts: list[tuple[int, int]] = []
        self.emptied = threading.Event()

    def run(self) -> None:
        closed = False
        while not closed:
            connection, _ = self._listening.accept()
            with connection:
                closed = self._serve(connection)

    def _serve(self, connection: socket.socket) -> bool:
        """Whether the client has closed its session."""
        zxid, _timeout, session = struct.unpack_from(">qiq", packet(connection), 4)
        self.attempts.append((zxid, session))
        if self.emptied.is_set() and zxid > 0:
            return False
        known: bool = session == 0
        granted_ms, number = (self._granted_ms, len(self.attempts)) if known else (0, 0)
        answer = struct.pack(">iiqi", 0, granted_ms, number, 16) + b"p" * 16 + b"\0"
        connection.sendall(struct.pack(">i", len(answer)) + answer)
        operation = 0
        while known and operation != CLOSE_SESSION:
            connection.settimeout(0.01)
            try:
                xid, operation = struct.unpack_from(">ii", packet(connection))
            except TimeoutError:
                if self.emptied.is_set() and len(self.attempts) == 1:
                    return False
                continue
            # with the number of the last change
            error = NO_NODE if operation == EXISTS else 0
            connection.sendall(struct.pack(">iiqi", 16, xid, LAST_CHANGE, error))
        return known


def test_servers_that_have_lost_their_data_are_connected_to_after_the_session() -> None:
    told: list[Connection] = []
    again = threading.Event()

    def tell(state: Connection) -> None:
        told.append(state)
        if told[-2:] == [Connection.LOST, Connection.CONNECTED]:
            again.set()

    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        server = EmptiedServer(listening, granted_ms=4_000)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        quorum = f"127.0.0.1:{listening.getsockname()[1]}"
        settings = ZooKeeperSettings(
            quorum, "/yarnflow/c", session_timeout_ms=2_000, retry_wait_ms=10, max_retry_wait_ms=20
        )
        connection = ZooKeeperConnection(settings, b"secret", None, tell)
        connection.open()
        try:
            connection.ask("see a change", lambda: connection.client.exists_async("/x"), patient=True)
            server.emptied.set()
            assert again.wait(PATIENCE.thread_s), told
        finally:
            connection.close()
        thread.join(PATIENCE.thread_s)
    # what comes then is the new session's; on a machine that stands still it may be suspended, too
    assert told[:4] == [Connection.CONNECTED, Connection.SUSPENDED, Connection.LOST, Connection.CONNECTED]
    assert server.attempts[1] == (LAST_CHANGE, 1), "at first nobody goes back in time"
    assert ((0, 1), (0, 0)) in pairwise(server.attempts), "the old session is found to have expired"
