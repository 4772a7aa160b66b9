"""Takes the connections of a server's port, also when the process has no descriptor left.

A reserved descriptor serves to accept and close, so that a peer is told at once and the queue of the
system does not fill.  Flink has no counterpart.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable
from typing import Final

from yarnflow.rpc.descriptors import Reserve, limit
from yarnflow.rpc.rare_warning import RareWarning

_LOG: Final = logging.getLogger(__name__)
#: connections accepted before others have their turn
_AT_ONCE: Final = 64
#: before the next try to accept when not even the reserve helped
_PAUSE_S: Final = 0.1
#: there is no descriptor left, or no memory for one
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Acceptor:
    """Accepts a server's connections; every method runs on the I/O thread.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
    listener : socket.socket
        Listens and does not block; closed by :meth:`close`.
    protocol : callable
        Makes the protocol of one connection.
    on_exhausted : callable
        There was no descriptor for a connection, which is closed: give up what can be.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listener: socket.socket,
        protocol: Callable[[], asyncio.Protocol],
        on_exhausted: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._listener = listener
        self._protocol = protocol
        self._on_exhausted = on_exhausted
        self._reserve = Reserve()
        self._beginning: set[asyncio.Task[object]] = set()
        self._closed = False
        self._exhausted = RareWarning(_LOG)

    def start(self) -> None:
        """Accept from now on."""
        if not self._closed:
            self._loop.add_reader(self._listener, self._ready)

    async def close(self) -> None:
        """Accept nothing more; those just accepted have begun when this returns."""
        self._closed = True
        self._loop.remove_reader(self._listener)
        self._listener.close()
        self._reserve.close()
        await asyncio.gather(*self._beginning, return_exceptions=True)

    def _ready(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, _address = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self._warn(error)
                self._on_exhausted()
                if not self._turn_away():
                    self._loop.remove_reader(self._listener)
                    self._loop.call_later(_PAUSE_S, self.start)
                    return
                continue
            connection.setblocking(False)
            task: asyncio.Task[object] = self._loop.create_task(self._begin(connection))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)

    async def _begin(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError as error:
            connection.close()
            _LOG.warning("a connection could not be taken: %s", error)

    def _turn_away(self) -> bool:
        """Close the connection that comes next; False = not even that is possible."""
        with self._reserve.released():
            try:
                connection, _address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return True
            except OSError:
                return False
            connection.close()
            return True

    def _warn(self, error: OSError) -> None:
        self._exhausted.warn(
            "no connection can be taken: %s; raise the limit of open files (ulimit -n, which is %d)",
            error.strerror,
            limit(),
        )
