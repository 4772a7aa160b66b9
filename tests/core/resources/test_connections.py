"""Whose end of a connection is, from tables of Linux."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from yarnflow.core.resources.connections import (
    SocketEnd,
    can_tell_owners,
    end_in_table,
    find_end,
    has_socket,
)

_HEADING = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
_ROW = "   0: {local} {remote} 01 00000000:00000000 00:00000000 00000000  1002        0 {inode} 1 0 20 4 30"
_V4, _V4_BACK = "0100007F:A2F5", "0100007F:1F90"
_MAPPED = "0000000000000000FFFF0000"
_LOOPBACK_V6 = "00000000000000000000000001000000"

linux = pytest.mark.skipif(not can_tell_owners(), reason="only Linux tells whose connections are")
little_endian = pytest.mark.skipif(sys.byteorder != "little", reason="tables of another byte order")


def table(*rows: tuple[str, str, int]) -> bytes:
    lines = [_ROW.format(local=local, remote=remote, inode=inode) for local, remote, inode in rows]
    return "\n".join((_HEADING, *lines, "")).encode()


@little_endian
def test_an_end_is_found_by_both_addresses_and_not_by_those_of_the_other_end() -> None:
    content = table((_V4_BACK, _V4, 7), (_V4, _V4_BACK, 8), (_V4, "00000000:0000", 9))
    near, far = ("127.0.0.1", 0xA2F5), ("127.0.0.1", 0x1F90)
    assert end_in_table(content, near, far) == SocketEnd(1002, 8)
    assert end_in_table(content, far, near) == SocketEnd(1002, 7)
    assert end_in_table(content, near, ("127.0.0.1", 80)) is None
    assert end_in_table(content, ("127.0.0.2", 0xA2F5), far) is None


@little_endian
def test_sockets_of_ipv6_that_speak_ipv4_or_ipv6() -> None:
    near, far = ("127.0.0.1", 0xA2F5), ("127.0.0.1", 0x1F90)
    mapped = table((_MAPPED + _V4, _MAPPED + _V4_BACK, 8))
    assert end_in_table(mapped, near, far) == SocketEnd(1002, 8)
    told_so = ("::ffff:127.0.0.1", 0xA2F5), ("::ffff:127.0.0.1", 0x1F90)
    assert end_in_table(mapped, *told_so) == SocketEnd(1002, 8)
    loopback = table((f"{_LOOPBACK_V6}:A2F5", f"{_LOOPBACK_V6}:1F90", 8))
    assert end_in_table(loopback, ("::1", 0xA2F5), ("::1", 0x1F90)) == SocketEnd(1002, 8)
    assert end_in_table(loopback, near, far) is None


def test_a_machine_without_ipv6_and_one_that_tells_nothing(tmp_path: Path) -> None:
    assert not can_tell_owners(tmp_path)
    assert find_end(("127.0.0.1", 1), ("127.0.0.1", 2), tmp_path) is None
    assert not has_socket(1, 2, tmp_path)


@linux
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_connection_of_another_process(family: socket.AddressFamily) -> None:
    """Through a socket of IPv6 as well, as a JVM may have them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = "127.0.0.1" if family is socket.AF_INET else "::ffff:127.0.0.1"
        program = (
            "import socket, sys; "
            f"s = socket.socket(socket.AddressFamily({int(family)})); "
            f"s.connect(({host!r}, {server.getsockname()[1]})); "
            "sys.stdin.read()"
        )
        with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as peer:
            connection, _ = server.accept()
            with closing(connection):
                end = find_end(connection.getpeername(), connection.getsockname())
                assert end is not None
                assert end.uid == os.getuid()
                assert has_socket(peer.pid, end.inode)
                assert not has_socket(os.getpid(), end.inode)
