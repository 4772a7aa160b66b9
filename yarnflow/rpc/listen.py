"""Binding a listening socket to one port of a range.

Flink counterpart: ``NetUtils.getPortRangeFromString`` and the port ranges of
``high-availability.jobmanager.port``.
"""

from __future__ import annotations

import errno
import logging
import socket
from typing import Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import security
from yarnflow.config.parsers import port_candidates
from yarnflow.core.hosts import is_loopback
from yarnflow.errors import InvalidOption, PortUnavailable
from yarnflow.rpc.member import ANY_PORT

_LOG: Final = logging.getLogger(__name__)
#: the system's queue of connections nobody accepted yet: every TaskManager dials a new leader at once
_BACKLOG: Final = 4096
_WHAT_NOW: Final = (
    "set jobmanager.bind-host or taskmanager.bind-host to an address of this machine, or 0.0.0.0"
)


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


def translated_addresses(configuration: Configuration) -> tuple[str, ...]:
    """Return what ``security.translated-addresses`` names.

    Raises
    ------
    InvalidOption
        A part is neither ``host:port`` nor ``host:*``.
    """
    option = security.TRANSLATED_ADDRESSES
    found = tuple(part.strip() for part in configuration.get(option).split(",") if part.strip())
    for address in found:
        host, _, port = address.rpartition(":")
        if not host or not (port == ANY_PORT or (port.isdecimal() and 0 < int(port) < 65536)):
            raise InvalidOption(
                f"{option.key} has {address!r}; write host:port or host:{ANY_PORT}, with commas between"
                " several"
            )
    return found


def bind(host: str, port_range: str) -> socket.socket:
    """Listening socket on the first free port of a range.

    Parameters
    ----------
    host : str
        Address or name to bind to; empty = every interface.
    port_range : str
        As :func:`yarnflow.config.parsers.port_candidates` reads it.

    Raises
    ------
    PortUnavailable
        The text is no port or range, none of its ports is free, or the host is not of this machine.
    """
    try:
        ports = tuple(port_candidates(port_range))
    except ValueError as exc:
        raise PortUnavailable(f"{port_range!r} names no ports; write {exc} (0 = any free one)") from exc
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
                raise PortUnavailable(f"cannot bind to {where}:{port}: {exc.strerror}; {_WHAT_NOW}") from exc
            reason = exc.strerror or str(exc)
            continue
        listener.setblocking(False)
        return listener
    raise PortUnavailable(
        f"no port of {port_range} is free on {where}: {reason}; "
        "end the process that holds it or set another range"
    )
