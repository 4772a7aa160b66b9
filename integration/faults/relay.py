"""Passes the TCP connections of one host on, late or with flipped bits; runs as a process of that host.

The kernel sends the connections here (``iptables -j REDIRECT``) and knows where they were meant to go
(``SO_ORIGINAL_DST``).  Those of this process have a mark, by which they are let pass.  One line of JSON on
standard input changes what it does (:class:`Behaviour`), and one line of JSON is the answer.

Needs nothing but Python: it is started by its path.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
import sys
from collections.abc import Coroutine
from dataclasses import asdict, dataclass, field

#: of the connections that this process makes
MARK = 7
_SO_ORIGINAL_DST = 80
_SO_MARK = 36
_CHUNK = 65536


@dataclass
class Behaviour:
    """What becomes of the bytes that pass."""

    #: how long each is kept, on its way there and on its way back
    delay_s: float = 0.0
    #: connections to these ports get bits flipped, in both directions
    flip_ports: list[int] = field(default_factory=list)
    #: share of the reads of which one bit is flipped
    flip_share: float = 0.0
    seed: int = 0


@dataclass
class Relay:
    """Passes connections on, all in the same way."""

    behaviour: Behaviour = field(default_factory=Behaviour)
    chosen: random.Random = field(default_factory=random.Random)
    passed: int = 0
    flipped: int = 0

    async def take(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, onward: socket.socket
    ) -> None:
        """One connection, until both sides have ended or one has broken.

        Parameters
        ----------
        onward : socket.socket
            Connected to where it is meant to go; closed at the end.
        """
        port = onward.getpeername()[1]
        there_reader, there_writer = await asyncio.open_connection(sock=onward)
        try:
            await _until_one_fails(
                self._pass(reader, there_writer, port), self._pass(there_reader, writer, port)
            )
            there_writer.close()
            writer.close()
        except OSError:
            # who sent to a connection that has broken must see it break
            there_writer.transport.abort()
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        # bounded, so that whoever sends too fast is slowed down
        waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(64)

        async def write() -> None:
            while True:
                due, content = await waiting.get()
                if (pause := due - asyncio.get_running_loop().time()) > 0:
                    await asyncio.sleep(pause)
                if not content:
                    writer.write_eof()
                    return
                writer.write(content)
                await writer.drain()

        async def read() -> None:
            content = b"-"
            while content:
                content = await reader.read(_CHUNK)
                due = asyncio.get_running_loop().time() + self.behaviour.delay_s
                self.passed += len(content)
                await waiting.put((due, self._flipped(content, port)))

        await _until_one_fails(write(), read())

    def _flipped(self, content: bytes, port: int) -> bytes:
        known = self.behaviour
        if not content or port not in known.flip_ports or self.chosen.random() >= known.flip_share:
            return content
        changed = bytearray(content)
        changed[self.chosen.randrange(len(changed))] ^= 1 << self.chosen.randrange(8)
        self.flipped += 1
        return bytes(changed)

    def behave(self, line: str) -> str:
        """Take an order, and say what has been done so far; an empty object only asks."""
        if order := json.loads(line):
            self.behaviour = Behaviour(**order)
            self.chosen = random.Random(self.behaviour.seed)
        return json.dumps({**asdict(self.behaviour), "passed": self.passed, "flipped": self.flipped})


async def _until_one_fails(*works: Coroutine[None, None, None]) -> None:
    """Do all of them at the same time; raises what the first one fails with, and ends the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def _onward(accepted: socket.socket) -> socket.socket:
    """A connection to where another one was meant to go."""
    port, packed = struct.unpack("!2xH4s8x", accepted.getsockopt(socket.SOL_IP, _SO_ORIGINAL_DST, 16))
    onward = socket.socket()
    try:
        onward.setblocking(False)
        onward.setsockopt(socket.SOL_SOCKET, _SO_MARK, MARK)
        await asyncio.get_running_loop().sock_connect(onward, (socket.inet_ntoa(packed), port))
    except OSError:
        onward.close()
        raise
    return onward


async def _serve(address: str, port: int) -> None:
    relay = Relay()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await relay.take(reader, writer, await _onward(writer.get_extra_info("socket")))
        except OSError:
            writer.transport.abort()

    server = await asyncio.start_server(take, address, port, backlog=512)
    print("{}", flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(relay.behave(line), flush=True)
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve("0.0.0.0", int(sys.argv[1])))
