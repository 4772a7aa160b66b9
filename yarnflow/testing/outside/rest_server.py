"""A cluster's REST interface with jobs that do what a test says, behind real sockets.

It answers the few paths that clients of one job need, in the shapes of :mod:`yarnflow.rest.answers`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from yarnflow.core.states import JobStatus


@dataclass(slots=True)
class FakeJob:
    """One job."""

    job_id: str
    name: str
    status: JobStatus
    #: error code and message, with a traceback behind the first line
    failure: tuple[str, str] | None = None
    checkpoints: list[dict[str, Any]] = field(default_factory=list)
    #: name and data of each, in order
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    #: records that its source has not read
    behind: dict[str, int] = field(default_factory=dict)
    #: request id → what became of it
    savepoints: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: savepoint and request id, where it was stopped
    stop: tuple[str, str] | None = None
    #: of its last batch
    batch_id: int = -1
    #: when it last had nothing to do, and all was in a checkpoint
    up_to_date_ms: int = -1


class RestServer:
    """Serves from the first moment on; to be closed.

    Parameters
    ----------
    token : str
        What requests must carry; empty = none.
    has_events : bool
        Whether ``/jobs/:id/events`` is there.
    """

    def __init__(self, token: str = "", *, has_events: bool = True) -> None:
        self.token = token
        #: what requests may carry that change nothing; empty = there is none
        self.read_token = ""
        self.has_events = has_events
        #: it serves as many streams of events as it may
        self.is_full = False
        #: method and path of each request that was let in
        self.requests: list[tuple[str, str]] = []
        #: why no savepoint can be taken; empty = they can
        self.savepoint_failure = ""
        #: a cancel is taken, and never done
        self.cancels_take_for_ever = False
        #: a stop is taken, and nothing answers after it
        self.savepoints_end_the_cluster = False
        #: the id that a request brings is not used, as behind YARN's web proxy
        self.names_requests_itself = False
        self._jobs: dict[str, FakeJob] = {}
        self._changed: Final = threading.Condition()
        self._connection = 0
        self._over = False
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.fake = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """``http://host:port``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        """The process is gone: connections break, and nobody listens any more.  Idempotent."""
        with self._changed:
            if self._over:
                return
            self._over = True
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def add(self, job_id: str, status: JobStatus = JobStatus.CREATED, name: str = "job") -> FakeJob:
        """A new job."""
        with self._changed:
            job = self._jobs[job_id] = FakeJob(job_id, name, JobStatus.INITIALIZING)
        self.becomes(job_id, status)
        return job

    def job(self, job_id: str) -> FakeJob:
        """One that was added."""
        return self._jobs[job_id]

    def becomes(
        self,
        job_id: str,
        status: JobStatus,
        failure: tuple[str, str] | None = None,
        stop: tuple[str, str] | None = None,
    ) -> None:
        """A job enters a state."""
        with self._changed:
            job = self._jobs[job_id]
            job.status, job.failure, job.stop = status, failure, stop
            shown = {"jid": job_id, "state": status.value, "timestamp": 1, "restarts": 0, **_stop(job)}
            job.events.append(("state", shown))
            self._changed.notify_all()

    def completes(self, job_id: str, checkpoint_id: int, savepoint: str = "") -> None:
        """A checkpoint of a job is complete, or a savepoint at a path."""
        shown = {
            "id": checkpoint_id,
            "status": "COMPLETED",
            "is_savepoint": bool(savepoint),
            "latest_ack_timestamp": checkpoint_id * 1000,
        }
        if savepoint:
            shown["external_path"] = savepoint
        with self._changed:
            job = self._jobs[job_id]
            job.checkpoints.insert(0, shown)
            job.batch_id = max(job.batch_id, 0)
            job.events.append(("checkpoint", {"jid": job_id, "checkpoint": shown}))
            self._changed.notify_all()

    def forget(self, job_id: str) -> None:
        """Another leader, which does not know the job."""
        with self._changed:
            del self._jobs[job_id]
            self._connection += 1
            self._changed.notify_all()

    def break_connections(self) -> None:
        """All streams of events end in the middle; new ones are served."""
        with self._changed:
            self._connection += 1
            self._changed.notify_all()

    # --- what requests get ---

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Status and document of a request."""
        parts = path.partition("?")[0].strip("/").split("/")
        if (method, parts) == ("GET", ["overview"]):
            return 200, {"jobs-running": len(self._jobs)}
        with self._changed:
            job = self._jobs.get(parts[1]) if len(parts) > 1 and parts[0] == "jobs" else None
            if job is None:
                return 404, {"errors": [f"Job could not be found: {path}"]}
            return self._about(job, method, parts[2:], body)

    def _about(self, job: FakeJob, method: str, rest: list[str], body: Any) -> tuple[int, Any]:
        if method == "PATCH" and not rest:
            return self._cancel(job)
        if method == "POST" and rest in (["stop"], ["savepoints"]):
            return self._take_savepoint(job, body, stops=rest == ["stop"])
        if method != "GET":
            return 405, {"errors": ["method not allowed"]}
        match rest:
            case []:
                return 200, _shown(job)
            case ["execution-result"]:
                return 200, _result(job)
            case ["checkpoints"]:
                return 200, {"history": job.checkpoints, "kept_until_timestamp": _kept_until_ms(job)}
            case ["savepoints", _] if self.savepoints_end_the_cluster:
                return 503, {"errors": ["no leader"]}
            case ["savepoints", request_id] if request_id in job.savepoints:
                return 200, job.savepoints[request_id]
        return 404, {"errors": [f"Not found: {'/'.join(rest)}"]}

    def _cancel(self, job: FakeJob) -> tuple[int, Any]:
        if job.status.globally_terminal:
            return 409, {"errors": [f"job {job.job_id} is {job.status.value} already"]}
        self.becomes(job.job_id, JobStatus.CANCELLING)
        if not self.cancels_take_for_ever:
            self.becomes(job.job_id, JobStatus.CANCELED)
        return 202, {}

    def _take_savepoint(self, job: FakeJob, body: Any, *, stops: bool) -> tuple[int, Any]:
        request_id = "0" * 32 if self.names_requests_itself else body["triggerId"]
        operation: dict[str, Any]
        if self.savepoint_failure:
            operation = {
                "failure-cause": {"class": "CHECKPOINT_FAILED", "stack-trace": self.savepoint_failure}
            }
        else:
            directory = body.get("targetDirectory") or body.get("target-directory") or "/savepoints"
            number = len(job.checkpoints) + 1
            operation = {"location": f"{directory}/savepoint-{number}"}
            self.completes(job.job_id, number, operation["location"])
        job.savepoints[request_id] = {"status": {"id": "COMPLETED"}, "operation": operation}
        if stops and not self.savepoint_failure:
            self.becomes(job.job_id, JobStatus.FINISHED, stop=(operation["location"], request_id))
        return 202, {"request-id": request_id}

    def stream(self, job_id: str, last_event_id: str) -> Iterator[bytes]:
        """Events of a job until it has ended, or the connection has."""
        shown = int(last_event_id or 0)
        connection = self._connection
        while True:
            with self._changed:
                job = self._jobs.get(job_id)
                if self._over or connection != self._connection or job is None:
                    return
                news = list(enumerate(job.events, 1))[shown:]
                if not news:
                    if job.status.globally_terminal:
                        return
                    self._changed.wait()
                    continue
            for number, (name, data) in news:
                shown = number
                yield f"id: {number}\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    fake: RestServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that has gone


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def do_PATCH(self) -> None:
        self._serve("PATCH")

    def do_PUT(self) -> None:
        self._serve("PUT")

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _serve(self, method: str) -> None:
        fake = self.server.fake
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        said = self.headers.get("Authorization")
        if fake.token and said != f"Bearer {fake.token}":
            may_read = bool(fake.read_token) and said == f"Bearer {fake.read_token}"
            if not may_read or method != "GET":
                self._send(403 if may_read else 401, {"errors": ["a token is needed"]})
                return
        fake.requests.append((method, self.path))
        parts = self.path.strip("/").split("/")
        if fake.has_events and method == "GET" and parts[-1] == "events":
            status, answer = fake.answer("GET", f"/jobs/{parts[1]}", None)
            if status == 200 and fake.is_full:
                status, answer = 503, {"errors": ["64 streams are open; try again later"]}
            elif status == 200:
                self._stream(fake.stream(parts[1], self.headers.get("Last-Event-ID", "")))
                return
        else:
            status, answer = fake.answer(method, self.path, body)
        self._send(status, answer)

    def _send(self, status: int, answer: Any) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _stream(self, events: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in events:
            self.wfile.write(event)
            self.wfile.flush()


def _kept_until_ms(job: FakeJob) -> int:
    done = (each["latest_ack_timestamp"] for each in job.checkpoints if not each["is_savepoint"])
    return max(next(done, -1), job.up_to_date_ms)


def _shown(job: FakeJob) -> dict[str, Any]:
    sources = [{"description": "source", "behind": job.behind}]
    return {
        "jid": job.job_id,
        "name": job.name,
        "state": job.status.value,
        "queries": [{"name": "query", "sources": sources, "batch-id": job.batch_id}],
        **_stop(job),
    }


def _stop(job: FakeJob) -> dict[str, Any]:
    if job.stop is None:
        return {}
    savepoint, request_id = job.stop
    return {"stop": {"savepoint": savepoint, "request-id": request_id, "drained": False}}


def _result(job: FakeJob) -> dict[str, Any]:
    if not job.status.globally_terminal:
        return {"status": {"id": "IN_PROGRESS"}}
    result: dict[str, Any] = {"id": job.job_id}
    if job.failure is not None:
        result["failure-cause"] = {"class": job.failure[0], "stack-trace": job.failure[1]}
    return {"status": {"id": "COMPLETED"}, "job-execution-result": result}


@contextmanager
def rest_server(token: str = "", *, has_events: bool = True) -> Iterator[RestServer]:
    """A server for the time of a test."""
    server = RestServer(token, has_events=has_events)
    try:
        yield server
    finally:
        server.close()
