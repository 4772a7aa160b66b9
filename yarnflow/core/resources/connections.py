"""Owners of connections within this machine, by ``/proc/net/tcp`` and ``/proc/<pid>/fd`` of Linux.

What a process says of itself over a connection may be a lie; what is here may not.  Elsewhere there is
nothing to be seen.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yarnflow.core.resources.processes import PROC

Address = tuple[str, int]
#: sockets of IPv4; those of IPv6, through which IPv4 is spoken as well
_TABLES: Final = ("tcp", "tcp6")


@dataclass(frozen=True, slots=True)
class SocketEnd:
    """One end of a connection."""

    #: user id of its owner
    uid: int
    #: number of the socket, which those of its owner's descriptors have that are open on it
    inode: int


def can_tell_owners(proc: Path = PROC) -> bool:
    """Return whether this process can learn whose connections are."""
    try:
        with (proc / "net" / _TABLES[0]).open("rb"):
            return True
    except OSError:
        return False


def can_see_sockets(pid: int, proc: Path = PROC) -> bool:
    """Return whether this process may look at another one's descriptors; some are hidden from their user."""
    try:
        next((proc / str(pid) / "fd").iterdir(), None)
    except OSError:
        return False
    return True


def find_end(local: Address, remote: Address, proc: Path = PROC) -> SocketEnd | None:
    """Return the socket of this machine that is bound to ``local`` and connected to ``remote``.

    A table that changes while it is read may be read without one of its sockets, so None may be an error.

    Raises
    ------
    OSError
        The tables cannot be read.
    """
    for table in _TABLES:
        try:
            content = (proc / "net" / table).read_bytes()
        except FileNotFoundError:
            continue  # a machine without IPv6
        found = end_in_table(content, local, remote)
        if found is not None:
            return found
    return None


def end_in_table(content: bytes, local: Address, remote: Address) -> SocketEnd | None:
    """Return the same in the text of one table, of IPv4 or IPv6."""
    for wide in (False, True):
        ends = b" %s %s " % (_as_told(local, wide), _as_told(remote, wide))
        at = content.find(ends)
        if at >= 0:
            # state, queues, timer, retransmissions, uid, timeout, inode
            fields = content[at + len(ends) :].split(b"\n", 1)[0].split()
            return SocketEnd(int(fields[4]), int(fields[6]))
    return None


def has_socket(pid: int, inode: int, proc: Path = PROC) -> bool:
    """Return whether a process has the socket open; False as well if it has ended or is another user's."""
    wanted = f"socket:[{inode}]"
    try:
        return any(_target(descriptor) == wanted for descriptor in (proc / str(pid) / "fd").iterdir())
    except OSError:
        return False


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except OSError:  # closed meanwhile
        return ""


def _as_told(address: Address, wide: bool) -> bytes:
    """Return an address as in the tables: words of 32 bits in this machine's order; ``wide`` = as IPv6."""
    host = ipaddress.ip_address(address[0])
    packed = host.packed
    if wide and host.version == 4:
        packed = bytes(10) + b"\xff\xff" + packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return b"".join(b"%08X" % word for word in words) + b":%04X" % address[1]
