"""Serves the dashboard and a cluster that is not there, over HTTP, with the faults a test asks for."""

from __future__ import annotations

import json
import mimetypes
import queue
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

import yarnflow.rest
from integration.servers import free_port

DASHBOARD: Final = Path(yarnflow.rest.__file__).parent / "dashboard"
#: as strict as can be: whatever the dashboard does must get along with it
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_JSON: Final = "application/json; charset=UTF-8"


class Answers(Protocol):
    """A cluster as it is read."""

    def answer(self, path: str, query: Mapping[str, str]) -> Any:
        """JSON of a path; raises KeyError where there is nothing."""

    def log(self, path: str) -> str | None:
        """The content of a file of logs, None where ``path`` is none."""


class RecordedAnswers:
    """What a Flink 2.3 answered, word for word."""

    def __init__(self) -> None:
        self._answers: dict[str, Any] = json.loads(Path(__file__).with_name("flink_answers.json").read_text())

    def answer(self, path: str, query: Mapping[str, str]) -> Any:
        """The recorded one; values that were asked for are as they were."""
        return self._answers[path]

    def log(self, path: str) -> str | None:
        """None were recorded."""
        return None


@dataclass
class Faults:
    """What is wrong with the server, to be changed while it runs."""

    #: connections end without an answer
    down: bool = False
    #: everything is answered with this status, if it is not 0; 502 and 504 by a gateway's own page
    status: int = 0
    #: what the TaskManagers are asked for is answered with this status, if it is not 0
    task_managers: int = 0
    #: needed by every request, if it is not empty
    token: str = ""
    #: all answers but files end in their middle, as of a process that dies
    breaks_off: bool = False
    #: there are no events
    no_events: bool = False
    #: what a savepoint fails with, if it is not empty
    savepoint_failure: str = ""


@dataclass
class FixtureServer:
    """One server, at ``url`` while it is started.

    Parameters
    ----------
    cluster : Answers
    prefix : str
        Path below which everything is served, as by YARN's proxy.
    """

    cluster: Answers
    prefix: str = "/"
    faults: Faults = field(default_factory=Faults)
    #: what was asked to be changed: method, path with query, body
    writes: list[tuple[str, str, Any]] = field(default_factory=list)
    #: all that was read
    reads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._streams: list[queue.SimpleQueue[bytes | None]] = []
        # one that the system gives to nobody while this server is stopped
        self.port = free_port()
        self.start()

    @property
    def url(self) -> str:
        """Where a browser goes."""
        return f"http://127.0.0.1:{self.port}{self.prefix}"

    def start(self) -> None:
        """Begin to answer, or begin again after a stop."""
        handler = type("Handler", (_Handler,), {"fixture": self})
        self._server = _Server(("127.0.0.1", self.port), handler)
        self.faults.down = False
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections, and end those there are, idle ones with their next request."""
        self.faults.down = True
        for stream in self._streams:
            stream.put(None)
        self._server.shutdown()
        self._server.server_close()

    def tell(self, event: str, data: Any) -> None:
        """Send an event to all who listen."""
        for stream in self._streams:
            stream.put(f"event: {event}\ndata: {json.dumps(data)}\n\n".encode())

    @property
    def listeners(self) -> int:
        """Streams of events that are open."""
        return len(self._streams)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fixture: FixtureServer

    def _handle(self) -> None:
        faults = self.fixture.faults
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if faults.down:
            self.close_connection = True
            return
        if not parts.path.startswith(self.fixture.prefix):
            return self._error(404, "outside")
        path = "/" + unquote(parts.path[len(self.fixture.prefix) :])
        if path == "/" or path.startswith("/dashboard/"):
            return self._file(path)
        if faults.status in (502, 504):
            return self._send(faults.status, b"<html>Bad gateway</html>", "text/html")
        if faults.status:
            return self._error(faults.status, "The JobManager has a fault.")
        if faults.task_managers and re.fullmatch(r"/taskmanagers/[^/]+/.+", path):
            return self._error(faults.task_managers, "The TaskManager does not answer.")
        if faults.token and self.headers.get("Authorization") != f"Bearer {faults.token}":
            return self._error(401, "a token is needed")
        if self.command == "GET":
            self.fixture.reads.append(self.path)
            return self._read(path, dict(parse_qsl(parts.query)))
        self.fixture.writes.append(
            (self.command, self.path, _decoded(body, self.headers.get("Content-Type", "")))
        )
        return self._write(path)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _handle

    def _file(self, path: str) -> None:
        file = DASHBOARD / ("index.html" if path == "/" else path.removeprefix("/dashboard/"))
        if not file.resolve().is_relative_to(DASHBOARD) or not file.is_file():
            return self._error(404, f"There is nothing at {path}.")
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        self._send(200, file.read_bytes(), f"{kind}; charset=UTF-8")

    def _read(self, path: str, query: Mapping[str, str]) -> None:
        if re.fullmatch(r"/jobs/\w{32}/events", path) and not self.fixture.faults.no_events:
            return self._events()
        if re.fullmatch(r"/jobs/\w{32}/(savepoints|checkpoints)/\w{32}", path):
            return self._json(self._operation(path))
        if (log := self.fixture.cluster.log(path)) is not None:
            return self._log(log.encode())
        try:
            answer = self.fixture.cluster.answer(path, query)
        except KeyError as error:
            return self._error(404, str(error.args[0]))
        self._json(answer)

    def _operation(self, path: str) -> Any:
        """In progress at the first look, done at the second."""
        if self.fixture.reads.count(self.path) < 2:
            return {"status": {"id": "IN_PROGRESS"}, "operation": None}
        if failure := self.fixture.faults.savepoint_failure:
            cause = {"class": "x.Failed", "stack-trace": failure, "serialized-throwable": ""}
            return {"status": {"id": "COMPLETED"}, "operation": {"failure-cause": cause}}
        done = (
            {"checkpointId": 62}
            if "/checkpoints/" in path
            else {"location": "hdfs:///savepoints/savepoint-1"}
        )
        return {"status": {"id": "COMPLETED"}, "operation": done}

    def _write(self, path: str) -> None:
        if path == "/jars/upload":
            return self._json({"filename": "/tmp/flink-web-upload/0f_words.py", "status": "success"})
        if path.endswith("/run"):
            return self._json({"jobid": "a1" * 16})
        if path.endswith("/plan"):
            return self._json(self.fixture.cluster.answer(f"/jobs/{'a1' * 16}/plan", {}))
        if self.command == "POST":
            return self._json({"request-id": "9" * 32}, 202)
        self._json({}, 202)

    def _events(self) -> None:
        stream: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.fixture._streams.append(stream)
        self.close_connection = True
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream; charset=UTF-8")
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(b": hello\n\n")
            while not self.fixture.faults.down:
                try:
                    event = stream.get(timeout=0.2)
                except queue.Empty:
                    event = b": still here\n\n"
                if event is None:
                    return
                self.wfile.write(event)
                self.wfile.flush()
        except OSError:
            pass  # the browser has gone
        finally:
            self.fixture._streams.remove(stream)

    def _log(self, content: bytes) -> None:
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if found is None:
            return self._send(200, content, "text/plain; charset=UTF-8")
        start = int(found[1]) if found[1] else max(0, len(content) - int(found[2]))
        if start >= len(content):
            return self._send(416, b"", "text/plain", {"Content-Range": f"bytes */{len(content)}"})
        part = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
        self._send(206, content[start:], "text/plain; charset=UTF-8", part)

    def _json(self, value: Any, status: int = 200) -> None:
        self._send(status, json.dumps(value).encode(), _JSON)

    def _error(self, status: int, message: str) -> None:
        self._json({"errors": [message]}, status)

    def _send(self, status: int, body: bytes, kind: str, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff", "Content-Security-Policy": POLICY, **(headers or {}),
        }.items():  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        if self.fixture.faults.breaks_off and kind == _JSON:
            self.close_connection = True
            body = body[: len(body) // 2]
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Requests are kept in ``reads`` and ``writes``."""


def _decoded(body: bytes, kind: str) -> Any:
    if kind.startswith("application/json"):
        return json.loads(body)
    return body.decode(errors="replace")


def main() -> None:
    """Serve until interrupted, to look at the dashboard by hand."""
    from integration.rest.sample_cluster import SampleCluster

    print(FixtureServer(SampleCluster()).url)
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
