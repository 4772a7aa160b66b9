"""How long a session really lasts: the time-out that ZooKeeper's server grants when it is connected to.

A server may grant another time than was asked for.  kazoo works with the granted one and has no question for
it, but takes the handler that opens its connections as an argument.  Ours reads the time from the server's
first packet, which ZooKeeper's protocol lays out as length, protocol version and time-out, four bytes each.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from typing import Any, Final

from kazoo.handlers.threading import SequentialThreadingHandler

_FIRST_FIELDS: Final = struct.Struct(">iii")


class GrantedTimeoutHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's threads and sockets.

    Parameters
    ----------
    granted : callable
        Told the granted time-out in milliseconds at each connect, in kazoo's own thread and before any
        listener hears of the connection.
    connecting : callable
        Called before each attempt to connect, in kazoo's own thread.
    """

    def __init__(self, granted: Callable[[int], None], connecting: Callable[[], None]) -> None:
        super().__init__()
        self._granted = granted
        self._connecting = connecting

    def create_connection(self, *arguments: Any, **options: Any) -> Any:
        """A socket that reads along until the time-out has come by."""
        self._connecting()
        return _ReadingAlong(super().create_connection(*arguments, **options), self._granted)


class _ReadingAlong:
    """A socket; all but ``recv`` is the socket's own."""

    def __init__(self, inner: socket.socket, granted: Callable[[int], None]) -> None:
        self._inner = inner
        self._granted = granted
        self._first = b""

    def recv(self, size: int) -> bytes:
        content = self._inner.recv(size)
        if len(self._first) < _FIRST_FIELDS.size:
            self._first += content
            if len(self._first) >= _FIRST_FIELDS.size:
                _length, _version, timeout_ms = _FIRST_FIELDS.unpack_from(self._first)
                # 0 = the session has expired
                if timeout_ms > 0:
                    self._granted(timeout_ms)
        return content

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
