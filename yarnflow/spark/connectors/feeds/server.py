"""What the driver answers to the process in which Spark plans Python data sources.

A request is a JSON object, the answer one, and parts as they are.  Both processes are on one machine, and the
connection begins with a proof that each knows the secret.  Whoever else connects holds nobody up: each
connection has a thread of its own from its beginning, and some seconds for its proof.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import struct
import threading
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge
from typing import Any, Final, Protocol

from yarnflow import errors
from yarnflow.errors import JobFailed, YarnflowError

logger = logging.getLogger(__name__)

_HOST: Final = "127.0.0.1"
#: for each message of the proof
_PROOF_S: Final = 10.0
#: before it is tried again to take a connection
_ACCEPT_AGAIN_S: Final = 1.0


class Feed(Protocol):
    """A source that is received in the driver; called from threads of the server's."""

    def latest(self, start: int) -> int:
        """Fix what has come as parts; the number of the last part that is to be read behind ``start``."""

    def parts(self, start: int, end: int) -> list[bytes]:
        """The parts behind ``start`` up to ``end``."""


class FeedServer:
    """Serves feeds by name, from :meth:`start` to :meth:`close`."""

    def __init__(self) -> None:
        self.secret = secrets.token_hex(32)
        #: where it listens
        self.port = 0
        self._feeds: dict[str, Feed] = {}
        self._listener: socket.socket | None = None
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._connections: set[Connection[Any, Any]] = set()

    def start(self) -> None:
        """Listen."""
        self._listener = socket.create_server((_HOST, 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, args=(self._listener,), name="feeds", daemon=True).start()

    def add(self, name: str, feed: Feed) -> None:
        """Serve a feed."""
        self._feeds[name] = feed

    def close(self) -> None:
        """Stop listening and end all connections."""
        if self._closed.is_set():
            return
        self._closed.set()
        if self._listener is not None:
            with suppress(OSError):
                # a thread that waits for a connection does not see that the listener is closed
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        with self._lock:
            for connection in self._connections:
                _end(connection)

    def _accept(self, listener: socket.socket) -> None:
        while not self._closed.is_set():
            try:
                accepted, _ = listener.accept()
            except OSError as error:
                if self._closed.is_set():
                    return
                logger.warning("Spark cannot connect to the driver: %s", error)
                self._closed.wait(_ACCEPT_AGAIN_S)
                continue
            connection: Connection[Any, Any] = Connection(accepted.detach())
            with self._lock:
                self._connections.add(connection)
                if self._closed.is_set():
                    _end(connection)
            threading.Thread(target=self._serve, args=(connection,), name="feed", daemon=True).start()

    def _serve(self, connection: Connection[Any, Any]) -> None:
        try:
            self._prove(connection)
            while True:
                request = json.loads(connection.recv_bytes())
                answer, parts = self._answer(request)
                connection.send_bytes(json.dumps({**answer, "parts": len(parts)}).encode())
                for part in parts:
                    connection.send_bytes(part)
        except (OSError, EOFError):
            # Spark's process has ended
            pass
        except (AssertionError, AuthenticationError) as error:
            logger.debug("Somebody connected who is not Spark: %s", error)
        finally:
            with self._lock:
                self._connections.discard(connection)
                connection.close()

    def _prove(self, connection: Connection[Any, Any]) -> None:
        secret = bytes.fromhex(self.secret)
        _limit(connection, _PROOF_S)
        deliver_challenge(connection, secret)
        answer_challenge(connection, secret)
        _limit(connection, 0)

    def _answer(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        try:
            feed = self._feeds[request["feed"]]
            if request["call"] == "latest":
                return {"latest": feed.latest(int(request["start"]))}, []
            return {}, feed.parts(int(request["start"]), int(request["end"]))
        except YarnflowError as error:
            return {"error": type(error).__name__, "message": str(error)}, []
        except Exception as error:
            logger.exception("A feed failed")
            return {"error": JobFailed.__name__, "message": f"{type(error).__name__}: {error}"}, []


def _end(connection: Connection[Any, Any]) -> None:
    """Have the thread that waits for a request see the end; it closes the connection itself."""
    with suppress(OSError), _socket_of(connection) as opened:
        opened.shutdown(socket.SHUT_RDWR)


def _limit(connection: Connection[Any, Any], wait_s: float) -> None:
    """How long a read or write may wait; 0 = as long as it takes."""
    whole_s = int(wait_s)
    time = struct.pack("ll", whole_s, int((wait_s - whole_s) * 1_000_000))
    with _socket_of(connection) as opened:
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            opened.setsockopt(socket.SOL_SOCKET, option, time)


def _socket_of(connection: Connection[Any, Any]) -> socket.socket:
    """The same connection, to be closed for itself."""
    return socket.socket(fileno=os.dup(connection.fileno()))


class FeedClient:
    """Asks a :class:`FeedServer`; in Spark's process.

    Parameters
    ----------
    port : int
    secret : str
    """

    def __init__(self, port: int, secret: str) -> None:
        self._connection = Client((_HOST, port), authkey=bytes.fromhex(secret))

    def latest(self, feed: str, start: int) -> int:
        """The number of the last part that is to be read; raises what the feed raised."""
        answer, _ = self._ask({"feed": feed, "call": "latest", "start": start})
        return int(answer["latest"])

    def parts(self, feed: str, start: int, end: int) -> list[bytes]:
        """The parts behind ``start`` up to ``end``; raises what the feed raised."""
        return self._ask({"feed": feed, "call": "parts", "start": start, "end": end})[1]

    def close(self) -> None:
        """Let go of the connection."""
        self._connection.close()

    def _ask(self, request: dict[str, Any]) -> tuple[dict[str, Any], list[bytes]]:
        self._connection.send_bytes(json.dumps(request).encode())
        answer: dict[str, Any] = json.loads(self._connection.recv_bytes())
        if "error" in answer:
            raise getattr(errors, answer["error"])(answer["message"])
        return answer, [self._connection.recv_bytes() for _ in range(answer["parts"])]
