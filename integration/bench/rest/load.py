"""Clients that ask one server over kept connections, as fast as it answers."""

from __future__ import annotations

import re
import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from integration.bench.rest.flink import headers

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_BLOCK_BYTES: Final = 1 << 18


@dataclass
class _Client:
    connection: socket.socket
    requests: list[bytes]
    asked: int = 0
    began_s: float = 0.0
    head: bytes = b""
    left_bytes: int = -1
    took_s: list[float] = field(default_factory=list)

    def ask(self) -> None:
        self.head, self.left_bytes = b"", -1
        self.began_s = time.perf_counter()
        self.connection.sendall(self.requests[self.asked % len(self.requests)])
        self.asked += 1

    def take(self) -> int:
        """Read what is there; the length of the body once it is complete, else -1."""
        part = self.connection.recv(_BLOCK_BYTES)
        if not part:
            raise SystemExit("rest: the server closed a connection")
        if self.left_bytes < 0:
            self.head += part
            end = self.head.find(b"\r\n\r\n")
            if end < 0:
                return -1
            found = _LENGTH.search(self.head[: end + 2])
            if not self.head.startswith(b"HTTP/1.1 200") or found is None:
                raise SystemExit(f"rest: unexpected answer {self.head[:300]!r}")
            self.length = int(found[1])
            self.left_bytes = self.length - (len(self.head) - end - 4)
        else:
            self.left_bytes -= len(part)
        if self.left_bytes:
            return -1
        self.took_s.append(time.perf_counter() - self.began_s)
        return self.length


def load(
    url: str, paths: Sequence[str], clients: int, seconds: float, token: str = ""
) -> dict[str, float]:
    """Answers per second and how long they took.

    Parameters
    ----------
    paths : sequence of str
        Asked for in turn.
    """
    parts = urlsplit(url)
    assert parts.hostname and parts.port
    fields = "".join(f"{name}: {value}\r\n" for name, value in headers(token).items())
    requests = [f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\n{fields}\r\n".encode() for path in paths]
    selector = selectors.DefaultSelector()
    asking = []
    for number in range(clients):
        connection = socket.create_connection((parts.hostname, parts.port), 60)
        client = _Client(connection, requests, asked=number)
        asking.append(client)
        selector.register(connection, selectors.EVENT_READ, client)
    answered = body_bytes = 0
    began = time.perf_counter()
    for client in asking:
        client.ask()
    under_way = clients
    while under_way:
        for key, _ in selector.select(60):
            client = key.data
            if (length := client.take()) < 0:
                continue
            answered += 1
            body_bytes += length
            if time.perf_counter() - began < seconds:
                client.ask()
            else:
                under_way -= 1
    wall_s = time.perf_counter() - began
    took = sorted(each for client in asking for each in client.took_s)
    for client in asking:
        client.connection.close()
    return {
        "per_second": round(answered / wall_s, 1),
        "p50_ms": round(took[len(took) // 2] * 1000, 1),
        "p99_ms": round(took[min(len(took) - 1, int(0.99 * len(took)))] * 1000, 1),
        "answers": answered,
        "body_bytes": body_bytes // answered,
    }
