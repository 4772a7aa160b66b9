"""A ResourceManager or NodeManager that answers what it is told, and skein's client without a JVM."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass
class Answer:
    """One HTTP answer; ``body`` is sent as JSON unless it is text."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class FakeDaemon:
    """Path → answer, or a function of the query; and what was asked."""

    address: str = ""
    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)


@contextmanager
def daemon() -> Iterator[FakeDaemon]:
    """A web server on a free port."""
    fake = FakeDaemon()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_PUT(self) -> None:
            self._answer()

        def _answer(self) -> None:
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query))
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            fake.asked.append((self.command, parts.path, query, body))
            answer = fake.answers.get(parts.path, Answer(_not_found(parts.path), 404))
            if callable(answer):
                answer = answer(query)
            if not isinstance(answer, Answer):
                answer = Answer(answer)
            text = isinstance(answer.body, (str, bytes))
            content = answer.body if text else json.dumps(answer.body)
            content = content if isinstance(content, bytes) else content.encode()
            self.send_response(answer.status)
            kind = "text/plain" if text else "application/json"
            for name, value in {"Content-Type": kind, **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.address = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _not_found(path: str) -> dict[str, Any]:
    """As Hadoop says it."""
    return {
        "RemoteException": {
            "exception": "NotFoundException",
            "message": f"java.lang.Exception: {path} not found",
            "javaClassName": "org.apache.hadoop.yarn.webapp.NotFoundException",
        }
    }


@dataclass
class FakeContainer:
    """``skein.model.Container`` as far as it is used."""

    instance: int
    state: str = "REQUESTED"
    exit_message: str = ""
    yarn_container_id: str = ""
    yarn_node_http_address: str = ""
    service_name: str = "taskmanager"

    @property
    def id(self) -> str:
        return f"{self.service_name}_{self.instance}"


class FakeClient:
    """``skein.ApplicationClient``: requests wait until the test grants them."""

    id = "application_1_0001"

    def __init__(self, initial: int = 0, memory_mib: int = 1728) -> None:
        self.all: list[FakeContainer] = []
        self.memory_mib = memory_mib
        self.down: Exception | None = None
        self.calls: list[str] = []
        for _ in range(initial):
            self.all.append(FakeContainer(len(self.all)))

    # --- what the ApplicationMaster does -------------------------------------

    def add_container(self, service: str) -> FakeContainer:
        self._call("add")
        container = FakeContainer(len(self.all), service_name=service)
        self.all.append(container)
        return container

    def kill_container(self, worker_id: str) -> None:
        self._call(f"kill {worker_id}")
        container = next(c for c in self.all if c.id == worker_id)
        if container.state in ("REQUESTED", "WAITING", "RUNNING"):
            container.state, container.exit_message = "KILLED", "Killed by user request."

    def get_containers(self, services: list[str], states: list[str]) -> list[FakeContainer]:
        self._call(f"get {','.join(states)}")
        return [
            FakeContainer(**vars(c)) for c in self.all if c.service_name in services and c.state in states
        ]

    def get_specification(self) -> Any:
        self._call("specification")
        resources = type("Resources", (), {"memory": self.memory_mib})
        service = type("Service", (), {"resources": resources})
        return type("Specification", (), {"services": {"taskmanager": service}})

    def _call(self, what: str) -> None:
        self.calls.append(what)
        if self.down is not None:
            raise self.down

    # --- what a test does ------------------------------------------------------

    def grant(self, instance: int) -> None:
        container = self.all[instance]
        container.state = "RUNNING"
        container.yarn_container_id = f"container_1_0001_01_{instance + 2:06}"
        container.yarn_node_http_address = "node1:8042"

    def end(self, instance: int, state: str = "FAILED", message: str = "") -> None:
        self.all[instance].state = state
        self.all[instance].exit_message = message

    def states(self) -> list[str]:
        return [container.state for container in self.all]
