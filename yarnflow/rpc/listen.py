"""Binding a listening socket to one port of a range.

Flink counterpart: ``NetUtils.getPortRangeFromString`` and the port ranges of
``high-availability.jobmanager.port``.
"""

from __future__ import annotations

import errno
import logging
import re
import socket
from typing import Final

from yarnflow.core.hosts import is_loopback
from yarnflow.errors import PortUnavailable

_LOG: Final = logging.getLogger(__name__)
_RANGE: Final = re.compile(r"\s*(\d{1,5})\s*(?:-\s*(\d{1,5})\s*)?")
#: the system's queue of connections nobody accepted yet: every TaskManager dials a new leader at once
_BACKLOG: Final = 4096
_WHAT_NOW: Final = (
    "set jobmanager.bind-host or taskmanager.bind-host to an address of this machine, or 0.0.0.0"
)


def parse_port_range(text: str) -> range:
    """Ports of ``"0"`` (any), ``"6123"`` or ``"50100-50200"``, in the order they are tried.

    Raises
    ------
    PortUnavailable
        The text is none of these forms, or a port is above 65535.
    """
    match = _RANGE.fullmatch(text)
    first = int(match[1]) if match else -1
    last = int(match[2] or first) if match else -1
    if not 0 <= first <= last <= 65535 or (first == 0 and last > 0):
        raise PortUnavailable(
            f"{text!r} is no port or port range; write 0 (any free port), 6123 or 50100-50200, at most 65535"
        )
    return range(first, last + 1)


def bind_host(configured: str, advertised: str) -> str:
    """Where a server listens: as configured, else only where it says it can be reached.

    Parameters
    ----------
    configured : str
        The option; ``0.0.0.0`` = every interface, empty = not set.
    advertised : str
        The host others are told.  A loopback name means 127.0.0.1: ``localhost`` may be ``::1``
        here and 127.0.0.1 for whoever calls.
    """
    host = configured or advertised
    return "127.0.0.1" if is_loopback(host) and host.lower().endswith("localhost") else host


def bind(host: str, port_range: str) -> socket.socket:
    """Listening socket on the first free port of a range.

    Parameters
    ----------
    host : str
        Address or name to bind to; empty = every interface.
    port_range : str
        As :func:`parse_port_range` reads it.

    Raises
    ------
    PortUnavailable
        No port of the range is free, or the host is not of this machine.
    """
    ports = parse_port_range(port_range)
    where = host or "0.0.0.0"
    try:
        family, _, _, _, address = socket.getaddrinfo(where, None, type=socket.SOCK_STREAM)[0]
    except OSError as exc:
        raise PortUnavailable(f"cannot bind to {where}: {exc.strerror}; {_WHAT_NOW}") from exc
    if is_loopback(str(address[0])) and not is_loopback(where):
        # /etc/hosts of many systems has the machine's own name there
        _LOG.warning(
            "Only this machine reaches %s, which means %s here; else %s.", where, address[0], _WHAT_NOW
        )
    reason = ""
    for port in ports:
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            # a port whose last server died a moment ago is free; one that is listened on is not
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((address[0], port))
            listener.listen(_BACKLOG)
        except OSError as exc:
            listener.close()
            if exc.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise PortUnavailable(
                    f"cannot bind to {where}:{port}: {exc.strerror}; {_WHAT_NOW}"
                ) from exc
            reason = exc.strerror or str(exc)
            continue
        listener.setblocking(False)
        return listener
    raise PortUnavailable(
        f"no port of {port_range} is free on {where}: {reason}; "
        "end the process that holds it or set another range"
    )
