"""The server of a driver's Python that its JVM calls: for batches, listeners and all it has proxies of.

Whoever it takes for the JVM can have it run anything: the answers to what Python asks while it is called come
over the caller's connection.  py4j's server takes anybody.  Here all but the driver's own JVM are refused
before the first byte is read, and that has to know a token: all containers of YARN may have the same user.

It is started before any program runs, since pyspark makes one without a token where it finds none.
"""

from __future__ import annotations

import logging
import secrets
import socket
import time
from typing import Any, Final

from yarnflow.core.resources.connections import (
    SocketEnd,
    can_see_sockets,
    can_tell_owners,
    find_end,
    has_socket,
)
from yarnflow.spark.java_classes import java_class

logger = logging.getLogger(__name__)

#: a table of sockets that changes may be read without one of them, so there are several looks
_LOOK_FOR_S: Final = 5.0
_LOOK_PAUSE_S: Final = 0.02
#: between two warnings of connections that are refused
_WARNING_PAUSE_S: Final = 60.0


def start_callback_server(gateway: Any) -> None:
    """Start the server for a JVM of ours, unless it runs already.

    Parameters
    ----------
    gateway : py4j.java_gateway.JavaGateway
        Of :meth:`yarnflow.spark.launch.jvm.GatewayJvm.connect`.
    """
    if gateway.__dict__.get("_callback_server") is not None:
        return
    from py4j.java_gateway import server_started

    parameters = gateway.callback_server_parameters
    parameters.auth_token = secrets.token_hex(32)
    parameters.port = 0
    parameters.eager_load = parameters.daemonize = parameters.daemonize_connections = True
    # as it says itself over a connection of ours: the process that was started may be a script around it
    pid = int(java_class(gateway, "java.lang.ProcessHandle").current().pid())

    def guard(server: Any, **_: Any) -> None:
        if server is gateway.__dict__.get("_callback_server"):
            server.server_socket = OwnJvmOnly(server.server_socket, pid)

    if can_tell_owners() and can_see_sockets(pid):
        # sent when the server listens, before it accepts anybody
        server_started.connect(guard)
    else:
        logger.warning("Not known here whose connections are: only a token keeps others from calling Python.")
    gateway.start_callback_server(parameters)
    _tell_java(gateway, gateway._callback_server.get_listening_port(), parameters.auth_token)


def _tell_java(gateway: Any, port: int, token: str) -> None:
    """Have the JVM call Python at a port, with a token.

    The way there is for it, ``resetCallbackClient``, drops the token of a gateway that pins threads.
    """
    from py4j.clientserver import ClientServer
    from py4j.java_gateway import JavaObject

    gateway._callback_server.port = gateway._python_proxy_port = port
    server = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    address = server.getCallbackClient().getAddress()
    server.resetCallbackClient(address, port)
    java_gateway = server.getGateway()
    clients = java_class(gateway, "py4j.CallbackClient")
    client: Any
    if isinstance(gateway, ClientServer):
        sockets = java_class(gateway, "javax.net.SocketFactory").getDefault()
        kept = clients.DEFAULT_MIN_CONNECTION_TIME, clients.DEFAULT_MIN_CONNECTION_TIME_UNIT
        # with the defaults of resetCallbackClient: a reference Python drops is dropped, no limit of time
        client = java_class(gateway, "py4j.PythonClient")(
            *(java_gateway, None, port, address, *kept, sockets, server, True, 0, token)
        )
    else:
        client = clients(port, address, token)
    field = java_class(gateway, "java.lang.Class").forName("py4j.Gateway").getDeclaredField("cbClient")
    field.setAccessible(True)
    field.set(java_gateway, client)


class OwnJvmOnly:
    """A listening socket that accepts connections of one process only, and closes all others at once.

    Parameters
    ----------
    listening : socket.socket
    pid : int
        Of the process.
    """

    def __init__(self, listening: socket.socket, pid: int) -> None:
        self._listening = listening
        self._pid = pid
        self._refused = 0
        self._warned_s = float("-inf")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._listening, name)

    def accept(self) -> tuple[socket.socket, Any]:
        """Wait for a connection of the process.

        Raises
        ------
        OSError
            The socket has been shut down.
        """
        while True:
            connection, peer = self._listening.accept()
            try:
                end = self._owned_end(connection)
            except OSError as error:
                self._refuse(connection, peer, f"whose owner cannot be looked up ({error})")
                continue
            if end is not None and has_socket(self._pid, end.inode):
                return connection, peer
            owner = "a process that is gone" if end is None else f"another process, of user id {end.uid}"
            self._refuse(connection, peer, f"from {owner}")

    def _owned_end(self, connection: socket.socket) -> SocketEnd | None:
        until_s = time.monotonic() + _LOOK_FOR_S
        while True:
            end = find_end(connection.getpeername()[:2], connection.getsockname()[:2])
            if end is not None or _is_closed(connection) or time.monotonic() >= until_s:
                return end
            time.sleep(_LOOK_PAUSE_S)

    def _refuse(self, connection: socket.socket, peer: Any, why: str) -> None:
        connection.close()
        self._refused += 1
        now_s = time.monotonic()
        if now_s - self._warned_s >= _WARNING_PAUSE_S:
            self._warned_s = now_s
            logger.warning(
                "Refused a connection %s (port %s) to the port on which only this driver's JVM calls Python;"
                " %d so far.",
                why,
                peer[1],
                self._refused,
            )


def _is_closed(connection: socket.socket) -> bool:
    """Return whether the other side has closed it; what it sent is not read."""
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
