"""A ResourceManager or NodeManager that answers what it is told."""

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
