"""The REST interface of a master process, wired: its port, its tokens, and whoever answers.

The port is there at once; the libraries are loaded in a thread, as nobody waits for them.  While the master
stands by its requests are passed on to the leader.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import rest as rest_options
from yarnflow.errors import PortUnavailable
from yarnflow.process.dirs import write_json
from yarnflow.rest.access.tokens import Access, proxy_path, token
from yarnflow.rpc.listen import bind

if TYPE_CHECKING:
    from yarnflow.rest.access.hosts import AllowedHosts
    from yarnflow.rest.framework.authentication import Authentication
    from yarnflow.rest.framework.server import WebServer

logger: Final = logging.getLogger(__name__)

_OFF: Final = -1
TOKENS_FILE: Final = "rest-tokens.json"
#: an ASGI application
WebApplication = Callable[[Any, Any, Any], Any]


def rest_ports(configuration: Configuration) -> str:
    """Ports the REST interface may have, as ``rest.bind-port`` is written; empty = there is none."""
    port = configuration.get(rest_options.REST_PORT)
    if port == _OFF:
        return ""
    is_chosen = configuration.is_set(rest_options.REST_PORT)
    if is_chosen and not configuration.is_set(rest_options.REST_BIND_PORT):
        return str(port)
    return configuration.get(rest_options.REST_BIND_PORT)


class MasterWeb:
    """The port of one master.

    Parameters
    ----------
    configuration : Configuration
        The cluster's.
    cluster_dir : Path
        Where the tokens are written.
    secret : bytes
        The cluster's.
    host : str
        Local address to listen on.
    on_yarn : bool
        YARN's web proxy may call.
    application : callable
        Who answers now.
    """

    def __init__(
        self,
        configuration: Configuration,
        cluster_dir: Path,
        secret: bytes,
        host: str,
        on_yarn: bool,
        application: Callable[[], WebApplication],
    ) -> None:
        self._configuration = configuration
        self._cluster_dir = cluster_dir
        self._secret = secret if configuration.get(rest_options.REST_AUTHENTICATION) else b""
        self._on_yarn = on_yarn
        #: first word of the paths that YARN's web proxy asks for; empty = none does
        self.proxy_path: Final = proxy_path(secret) if on_yarn else ""
        self._application = application
        self._listener: socket.socket | None = None
        self._server: WebServer | None = None
        self._lock = threading.Lock()
        self._authentication: Authentication | None = None
        self._stopped = False
        self._host = configuration.get(rest_options.REST_BIND_ADDRESS) or host

    @property
    def port(self) -> int:
        """Port that is listened on; 0 = there is no REST interface, or it is not started."""
        return 0 if self._listener is None else int(self._listener.getsockname()[1])

    @property
    def authentication(self) -> Authentication:
        """The check of requests; loads libraries."""
        from yarnflow.rest.framework.authentication import Authentication

        with self._lock:
            if self._authentication is None:
                self._authentication = Authentication(self._secret, loopback_reads=not self._on_yarn)
            return self._authentication

    def token(self, access: Access) -> str:
        """What a request needs; empty = nothing."""
        return token(self._secret, access) if self._secret else ""

    def start(self) -> None:
        """Take a port and begin to answer; returns at once.

        Raises
        ------
        PortUnavailable
            No port can be had.
        """
        ports = rest_ports(self._configuration)
        if not ports:
            return
        try:
            self._listener = bind(self._host, ports)
        except PortUnavailable as error:
            raise PortUnavailable(
                f"the REST interface has no port: {error.message} (options rest.bind-port, rest.port and "
                "rest.bind-address)"
            ) from error
        if not self._secret:
            logger.warning(
                "rest.authentication.enabled is false: whoever can connect to %s:%s may read everything of "
                "this cluster without a token, other users of the machine included, cancel and stop its "
                "jobs, end it%s.",
                self._host,
                self.port,
                ", and run programs as its user" if self._takes_programs else "",
            )
        threading.Thread(target=self._start, name="rest-start", daemon=True).start()

    def stop(self) -> None:
        """Close the port."""
        with self._lock:
            self._stopped = True
            server = self._server
        if server is not None:
            server.stop()
        elif self._listener is not None:
            self._listener.close()

    def _start(self) -> None:
        try:
            self._serve()
        except Exception:
            logger.exception("the REST interface cannot be started")

    def _serve(self) -> None:
        from yarnflow.rest.framework.server import WebServer

        self._write_tokens()

        async def answer(scope: Any, receive: Any, send: Any) -> None:
            await self._application()(scope, receive, send)

        with self._lock:
            if self._stopped or self._listener is None:
                return
            self._server = WebServer(self._listener, answer, self._hosts(), self.proxy_path)
            self._server.start()

    @property
    def _takes_programs(self) -> bool:
        return self._configuration.get(rest_options.WEB_SUBMIT_ENABLE)

    def _hosts(self) -> AllowedHosts:
        from yarnflow.rest.access.hosts import AllowedHosts

        get = self._configuration.get
        own = (self._host, get(rest_options.REST_ADDRESS), get(cluster_options.JOBMANAGER_RPC_ADDRESS))
        return AllowedHosts(own, get(rest_options.REST_ALLOWED_HOSTS))

    def _write_tokens(self) -> None:
        if not self._secret:
            return
        tokens = {access.value: token(self._secret, access) for access in Access}
        try:
            write_json(self._cluster_dir / TOKENS_FILE, tokens)
        except OSError as error:
            logger.warning("The tokens of the REST interface cannot be written: %s", error)
