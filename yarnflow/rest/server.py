"""The web server of a JobManager: one port, reading only.

Nobody has to say who he is, as in Flink by default; so it shows no options and changes nothing.
What users' code says in its exceptions is shown as it is.
"""

from __future__ import annotations

import logging
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol

from yarnflow.errors import PortUnavailable
from yarnflow.rest.routes import METHODS, Answer, error_answer

logger: Final = logging.getLogger(__name__)

#: a connection without a request for so long is closed
IDLE_TIMEOUT_S: Final = 15.0
#: further ones are closed at once
MAX_CONNECTIONS: Final = 64


class Answering(Protocol):
    """What answers requests, as :class:`~yarnflow.rest.routes.Routes` does."""

    def answer(self, method: str, target: str) -> Answer: ...


class WebServer:
    """Serves :class:`~yarnflow.rest.routes.Routes` over HTTP.

    Parameters
    ----------
    host : str
        Local address to listen on.
    port : int
        0 = any free port.
    routes : Answering
        Answers the requests.

    Raises
    ------
    PortUnavailable
        The port cannot be had.
    """

    def __init__(self, host: str, port: int, routes: Answering) -> None:
        try:
            self._server = _Server(host, port, routes)
        except OSError as error:
            raise PortUnavailable(
                f"the web page cannot be served at {host}:{port}: {error.strerror or error}; set rest.port "
                "or rest.bind-address"
            ) from error

    @property
    def port(self) -> int:
        """Port that is listened on."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Begin to answer."""
        threading.Thread(target=self._server.serve_forever, name="web", daemon=True).start()

    def stop(self) -> None:
        """Close the port; answers under way are not waited for."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, host: str, port: int, routes: Answering) -> None:
        self.routes = routes
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Refuse what would need a thread too many."""
        return self._free.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection, in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no news."""
        logger.debug("connection of %s failed", client_address, exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "yarnflow"
    sys_version = ""
    timeout = IDLE_TIMEOUT_S
    server: _Server

    def _handle(self) -> None:
        try:
            answer = self.server.routes.answer(self.command, self.path)
        except Exception:
            logger.exception("request %s %s", self.command, self.path)
            answer = error_answer("The request failed; see the JobManager's log.", 500)
        self._send(answer)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _handle

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What is not even a request is answered in JSON too."""
        self._send(error_answer(message or self.responses.get(code, ("bad request",))[0], code))

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
        if answer.location:
            self.send_header("Location", answer.location)
        if answer.status == 405:
            self.send_header("Allow", ", ".join(METHODS))
        if answer.status >= 400:
            # a body that came along was not read, so nothing after it can be
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Requests are of interest to debuggers only."""
        logger.debug("%s: " + format, self.address_string(), *arguments)
