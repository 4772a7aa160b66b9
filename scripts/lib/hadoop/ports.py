"""Ports for daemons that are about to start."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path


def free_ports(count: int) -> list[int]:
    """Free TCP ports of 127.0.0.1, below those that the system hands out to clients by itself.

    A port of that range could be some connection's by the time a daemon is started again on it.
    """
    try:
        lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except OSError:
        lowest = 32768
    below = range(max(1024, lowest - 12000), lowest)
    candidates = random.sample(below, len(below)) if len(below) >= 1000 else []
    # 0 = let the system choose
    candidates += [0] * count
    with contextlib.ExitStack() as held:
        ports: list[int] = []
        for port in candidates:
            if len(ports) == count:
                break
            taken = held.enter_context(socket.socket())
            try:
                taken.bind(("127.0.0.1", port))
            except OSError:
                continue
            ports.append(taken.getsockname()[1])
    return ports
