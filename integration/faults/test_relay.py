"""A relay lets both sides see how a connection ends."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from integration.faults.relay import Relay
from tests.patience import PATIENCE

pytestmark = pytest.mark.gate

#: after which a test that would hang fails instead

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Relayed:
    """Both ends of a connection with a relay in between."""

    relay: Relay
    client: Ends
    server: Ends
    over: asyncio.Task[None]


async def connected() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        one = socket.create_connection(listening.getsockname())
        return one, listening.accept()[0]


@asynccontextmanager
async def relayed() -> AsyncIterator[Relayed]:
    """Refuses to end before the relay is done with the connection."""
    relay, before = Relay(), asyncio.all_tasks()
    (mine, accepted), (onward, theirs) = await connected(), await connected()
    client, server = await asyncio.open_connection(sock=mine), await asyncio.open_connection(sock=theirs)
    over = asyncio.create_task(relay.take(*await asyncio.open_connection(sock=accepted), onward))
    try:
        yield Relayed(relay, client, server, over)
        await over
        assert asyncio.all_tasks() == before, "nothing goes on passing"
    finally:
        over.cancel()
        for _, writer in (client, server):
            writer.transport.abort()


def reset(ends: Ends) -> None:
    """Break a connection, as the death of a process does that has not read all."""
    connection = ends[1].get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    ends[1].transport.abort()


async def broken(ends: Ends) -> None:
    """Read until it is."""
    try:
        assert await ends[0].read() == b""
    except ConnectionResetError:
        pass


def test_content_and_ends_are_passed() -> None:
    async def test() -> None:
        async with relayed() as made:
            made.client[1].write(b"word")
            made.client[1].write_eof()
            assert await made.server[0].read() == b"word"
            made.server[1].write(b"answer")
            made.server[1].close()
            assert await made.client[0].read() == b"answer"
        assert made.relay.passed == 10

    asyncio.run(asyncio.wait_for(test(), PATIENCE.thread_s))


@pytest.mark.parametrize("by_client", [True, False])
def test_a_broken_connection_breaks_the_other_one(by_client: bool) -> None:
    async def test() -> None:
        async with relayed() as made:
            made.client[1].write(b"word")
            assert await made.server[0].readexactly(4) == b"word"
            reset(made.client if by_client else made.server)
            await broken(made.server if by_client else made.client)

    asyncio.run(asyncio.wait_for(test(), PATIENCE.thread_s))
