"""What a host's name tells."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether a name or address means the machine itself, so that no other can reach it."""
    name = host.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def bind_address(host: str) -> str:
    """What a process listens on that others reach as ``host``.

    The loopback address when no other machine can mean this one by it, else every interface:
    the name may belong to an address the machine itself does not know.
    """
    if not is_loopback(host):
        return "0.0.0.0"
    # the JVMs speak IPv4 only; a name may be ::1 here and 127.0.0.1 for whoever calls
    return host if host.startswith("127.") else "127.0.0.1"
