"""A server on a local socket that answers as a test says."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

OK = b"+OK\r\n"
#: the connection ends
END = b""


def array(*items: str | None) -> bytes:
    """An answer of texts; None = there is no such field."""
    found = [b"*%d\r\n" % len(items)]
    for item in items:
        text = None if item is None else item.encode()
        found.append(b"$-1\r\n" if text is None else b"$%d\r\n%s\r\n" % (len(text), text))
    return b"".join(found)


def error(text: str) -> bytes:
    """An answer that refuses."""
    return b"-%s\r\n" % text.encode()


class FakeRedis:
    """One hash, which ``HMGET`` gives whatever the key is; what else is asked, the test answers."""

    def __init__(self) -> None:
        #: all that was asked since the connections began, without what clients say of themselves
        self.requests: list[list[bytes]] = []
        self.fields: dict[str, str] = {}
        #: of scripts, each once; None = none at all
        self.scripts: list[bytes | None] = []
        #: to what else is asked
        self.otherwise: Callable[[list[bytes]], bytes] = lambda request: error("ERR unknown command")
        self.port = 0

    def asked(self) -> list[str]:
        """Names of what was asked."""
        return [request[0].decode() for request in self.requests]

    def answer(self, request: list[bytes]) -> bytes | None:
        """None = nothing is said."""
        name = request[0]
        if name == b"CLIENT":
            return OK
        self.requests.append(request)
        if name == b"HMGET":
            return array(*(self.fields.get(field.decode()) for field in request[2:]))
        return self.scripts.pop(0) if name == b"EVAL" else self.otherwise(request)


@contextmanager
def running() -> Iterator[FakeRedis]:
    """A server that ends with the block."""
    fake, connections = FakeRedis(), list[socket.socket]()
    threads = list[threading.Thread]()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        fake.port = listening.getsockname()[1]

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    connections.append(connection)
                    threads.append(threading.Thread(target=_serve, args=(fake, connection)))
                    threads[-1].start()

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield fake
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for connection in connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()


def _serve(fake: FakeRedis, connection: socket.socket) -> None:
    with connection, connection.makefile("rb") as requests, suppress(OSError):
        while request := _request(requests):
            answer = fake.answer(request)
            if answer == END:
                return
            if answer is not None:
                connection.sendall(answer)


def _request(stream: BinaryIO) -> list[bytes]:
    """Empty = there is none any more."""
    found = list[bytes]()
    for _ in range(int(stream.readline()[1:] or b"0")):
        length = int(stream.readline()[1:])
        found.append(stream.read(length))
        stream.readline()
    return found
