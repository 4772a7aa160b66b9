"""What Prometheus gets when it asks.  Flink counterpart: ``PrometheusReporter``.

As there, counters are gauges: they begin anew with each attempt of a job, and have no ``_total`` in their
names.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from socketserver import ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.metrics_core import Metric

from yarnflow.config.parsers import port_candidates
from yarnflow.core.monitoring.declarations import METRICS_BY_NAME
from yarnflow.errors import PortUnavailable
from yarnflow.metrics.registry import LabeledMetrics
from yarnflow.metrics.reporters.names import prometheus_name
from yarnflow.metrics.reporters.settings import ReporterSettings

logger = logging.getLogger(__name__)

#: a client that sends or takes nothing for so long is given up
CLIENT_TIMEOUT_S: Final = 10.0
#: clients at the same time; further ones are closed at once
MAX_CLIENTS: Final = 16


class PrometheusReporter:
    """Serves ``/metrics``.

    Parameters
    ----------
    settings : ReporterSettings
    everything : callable
        All values there are now; called for each request, by a thread of its own.
    host : str
        Address to listen at where the settings name none; empty = every interface.
    """

    def __init__(
        self, settings: ReporterSettings, everything: Callable[[], Iterable[LabeledMetrics]], host: str
    ) -> None:
        self._settings = settings
        self._everything = everything
        self._host = settings.host or host or "0.0.0.0"  # noqa: S104 - as Flink's
        self._server: tuple[_Server, threading.Thread] | None = None
        self.port = 0

    def start(self) -> None:
        """Listen at the first port that is free.

        Raises
        ------
        PortUnavailable
            None is.
        """
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        for port in port_candidates(self._settings.ports):
            try:
                server = _Server(self._host, port)
            except OSError as error:
                logger.debug("Port %d: %s", port, error)
                continue
            server.set_app(make_wsgi_app(registry))
            thread = threading.Thread(target=server.serve_forever, name="metrics-prometheus", daemon=True)
            thread.start()
            self._server, self.port = (server, thread), server.server_port
            logger.info("Metrics for Prometheus at http://%s:%d/metrics.", self._host, self.port)
            return
        raise PortUnavailable(
            f"metrics.reporter.{self._settings.name}.port: no port of {self._settings.ports} is free at "
            f"{self._host}; give a range"
        )

    def stop(self) -> None:
        """Listen no more."""
        if self._server is not None:
            server, thread = self._server
            server.shutdown()
            server.server_close()
            thread.join()

    def collect(self) -> Iterator[Metric]:
        """Called by the library for each request."""
        families: dict[str, Metric] = {}
        # names of user metrics may differ only in signs that Prometheus has not; it refuses all for one twice
        told: set[tuple[str, frozenset[tuple[str, str]]]] = set()
        settings = self._settings
        for found in self._everything():
            labels = settings.variables(found.variables)
            for name, value in found.metrics.values.items():
                if isinstance(value, str) or not settings.wants(name):
                    continue
                full_name = prometheus_name(found.metrics, name)
                series = full_name, frozenset(labels.items())
                if series in told:
                    continue
                told.add(series)
                family = families.get(full_name)
                if family is None:
                    family = families[full_name] = Metric(full_name, _said_of(name), "gauge")
                family.add_sample(full_name, labels, float(value))
        return iter(families.values())

    def describe(self) -> Iterable[Metric]:
        """Nothing is known before it is asked for."""
        return ()


class _Handler(WSGIRequestHandler):
    """One connection."""

    def setup(self) -> None:
        """Begin, with a limit of each read and write."""
        self.request.settimeout(CLIENT_TIMEOUT_S)
        super().setup()

    def log_message(self, format: str, *args: Any) -> None:
        """Nobody wants to know who asks."""


class _Server(ThreadingMixIn, WSGIServer):
    """The library's own has a thread for everybody who connects, for as long as they like: this port asks
    for no token, and its threads and descriptors are the JobManager's."""

    daemon_threads = True

    def __init__(self, host: str, port: int) -> None:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family = found[0][0]
        self._places = threading.BoundedSemaphore(MAX_CLIENTS)
        super().__init__((host, port), _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin with a connection, if there is a place for it."""
        if self._places.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """All of a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The library would print it."""
        logger.debug("Client %s of the metrics", client_address, exc_info=True)  # noqa: LOG014


def _said_of(name: str) -> str:
    declared = METRICS_BY_NAME.get(name)
    if declared is None:
        return f"{name}, of an operator."
    unit = declared.unit.value
    return f"{declared.description} Unit: {unit}." if unit else declared.description
