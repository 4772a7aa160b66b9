"""Who a process is in its cluster, and whom it means when it dials: what the handshake is about.

Flink counterpart: the certificates of ``security.ssl.internal``, which say no more than the cluster.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from yarnflow.errors import AuthenticationFailed


class Role(Enum):
    """What a process is, by the name that is sent and shown."""

    JOB_MANAGER = "JobManager"
    TASK_MANAGER = "TaskManager"
    DRIVER = "driver"
    #: a command, a user's program, or whoever supervises processes
    CLIENT = "client"


#: in place of a port: all of a host's, where processes have ports that nobody knows before
ANY_PORT: Final = "*"
#: who calls whom: a server of a role refuses all others, so that what one process proves to another is of no
#: use at a third
CALLERS: Final[Mapping[Role, frozenset[Role]]] = {
    Role.JOB_MANAGER: frozenset(Role),
    Role.TASK_MANAGER: frozenset({Role.JOB_MANAGER}),
    Role.DRIVER: frozenset({Role.JOB_MANAGER}),
    Role.CLIENT: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Member:
    """A process that knows its cluster's secret.

    Attributes
    ----------
    cluster_id : str
        ``high-availability.cluster-id``; empty = a client that has the secret and does not know the name.

    Raises
    ------
    AuthenticationFailed
        The secret is empty.
    """

    role: Role
    secret: bytes = field(repr=False)
    cluster_id: str = ""

    def __post_init__(self) -> None:
        # slashes around it are not part of a name anywhere else either
        object.__setattr__(self, "cluster_id", self.cluster_id.strip("/"))
        if not self.secret:
            raise AuthenticationFailed(
                "the cluster secret is empty; check the secret file (option security.cluster-secret-file)"
            )


@dataclass(frozen=True, slots=True)
class Destination:
    """The process that a client means."""

    role: Role
    #: ``host:port`` as it was given to the client
    dialled: str
    #: :func:`numeric` of the other end of its connection
    reached: str


def numeric(address: tuple[Any, ...]) -> str:
    """One end of a connection (``getsockname()``, ``getpeername()``), written as the other side writes it.

    The two may differ in the zone of an IPv6 address, and in the family where a socket takes both.
    """
    host = ipaddress.ip_address(str(address[0]).partition("%")[0])
    if isinstance(host, ipaddress.IPv6Address):
        if host.ipv4_mapped is None:
            return f"[{host}]:{address[1]}"
        host = host.ipv4_mapped
    return f"{host}:{address[1]}"
