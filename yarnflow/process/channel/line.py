"""One end of the line: messages as text, one a line, both ways.

A line is the name of the message's type and the message as JSON, ``KillDriver {"driver_id":"…"}``.
Never looks at what a message means.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, get_args

from yarnflow.core.json_codec import from_json, to_json
from yarnflow.errors import RpcProtocolError

logger: Final = logging.getLogger(__name__)

Sent = TypeVar("Sent")
M = TypeVar("M")


class MessageLine(Generic[Sent]):
    """One end of a stream socket that carries messages.

    Parameters
    ----------
    connection : socket.socket
        Owned by the line from now on.
    received : union of message types
        What the peer may say; anything else is logged and ignored.
    on_close : callable, optional
        Told once when the peer is gone.
    """

    def __init__(
        self,
        connection: socket.socket,
        received: Any,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self._connection = connection
        self._types = {kind.__name__: kind for kind in get_args(received)}
        self._handlers: dict[type, list[Callable[[Any], object]]] = {kind: [] for kind in get_args(received)}
        self._on_close = on_close
        self._write_lock = threading.Lock()

    def on(self, kind: type[M], handler: Callable[[M], object]) -> None:
        """Call ``handler`` with each message of a type, from the reader thread."""
        self._handlers[kind].append(handler)

    def start(self) -> None:
        """Begin to read, in a thread of the line."""
        threading.Thread(target=self._read, name="channel", daemon=True).start()

    def send(self, message: Sent) -> bool:
        """Send one message; False when the peer is gone.  From any thread."""
        line = f"{type(message).__name__} {to_json(message)}\n".encode("ascii")
        try:
            with self._write_lock:
                self._connection.sendall(line)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close this end; the peer sees it."""
        try:
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._connection.close()

    def _read(self) -> None:
        try:
            with self._connection.makefile("r", encoding="ascii", errors="replace", newline="\n") as lines:
                for line in lines:
                    self._handle(line)
        except (OSError, ValueError):
            pass  # closed by either side
        self._connection.close()
        if self._on_close is not None:
            self._on_close()

    def _handle(self, line: str) -> None:
        name, _, text = line.partition(" ")
        kind = self._types.get(name)
        if kind is None:
            logger.error("Ignored a line on the supervisor channel that is no message: %.100r", line)
            return
        try:
            message = from_json(kind, text)
            for handler in self._handlers[kind]:
                handler(message)
        except RpcProtocolError as error:
            logger.error("Ignored a message on the supervisor channel: %s", error)
        except Exception:  # one bad message must not end the channel, which would end the cluster
            logger.exception("A message on the supervisor channel failed: %s", name)
