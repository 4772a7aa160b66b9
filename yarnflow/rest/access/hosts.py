"""Under which names an interface may be asked for: the check of the header ``Host``.

A page of another site whose name is suddenly an address of this machine (DNS rebinding) is of the same
origin as this interface for the browser, and only its name gives it away.  Jupyter counterpart:
``allow_remote_access`` and ``local_hostnames``.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from enum import Enum
from functools import cache
from typing import Final

from yarnflow.core.hosts import is_loopback

_ANY: Final = "*"


class NameKind(Enum):
    """Whose name a request has asked for."""

    #: an address, or a name of this machine
    OWN = "own"
    #: one that an option names, such as a gateway's
    CONFIGURED = "configured"
    FOREIGN = "foreign"


class AllowedHosts:
    """The names of one interface.

    Parameters
    ----------
    own : iterable of str
        Names by which others are told to reach it; empty ones do not count.  Those of the machine come to it.
    configured : str
        ``rest.allowed-hosts``.
    """

    def __init__(self, own: Iterable[str], configured: str) -> None:
        machine = socket.gethostname()
        self._own = {_plain(name) for name in (*own, machine, machine.partition(".")[0]) if name}
        self._configured = tuple(_plain(part) for part in configured.split(",") if part.strip())

    async def kind(self, header: str) -> NameKind:
        """Return whose name a request has asked for.

        Parameters
        ----------
        header : str
            Its header ``Host``; empty = it has none, as no browser would send it.
        """
        name = _name(header)
        kind = self._kind(name)
        if kind is NameKind.FOREIGN and name == await asyncio.to_thread(_full_name):
            return NameKind.OWN
        return kind

    def _kind(self, name: str) -> NameKind:
        if not name or name in self._own or is_loopback(name) or _is_address(name):
            return NameKind.OWN
        if any(pattern == _ANY or _fits(name, pattern) for pattern in self._configured):
            return NameKind.CONFIGURED
        return NameKind.FOREIGN


@cache
def _full_name() -> str:
    """Name of this machine with its domain; a name server may be asked, so not before somebody uses it."""
    return _plain(socket.getfqdn())


def _plain(name: str) -> str:
    return name.strip().strip("[]").rstrip(".").lower()


def _name(header: str) -> str:
    """Without the port; of IPv6 without the brackets."""
    if header.startswith("["):
        return _plain(header.partition("]")[0])
    return _plain(header.partition(":")[0])


def _fits(name: str, pattern: str) -> bool:
    return name.endswith(pattern) if pattern.startswith(".") else name == pattern


def _is_address(name: str) -> bool:
    """Return whether nobody had to be asked what it means."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
