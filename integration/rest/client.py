"""A client of the REST interface for tests: requests, operations that take a while, event streams."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from integration.conftest import wait_until
from tests.patience import PATIENCE


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Rest:
    """One REST interface.

    Parameters
    ----------
    url : str
        ``http://host:port``, perhaps with a path below which everything is.
    token : str
        Sent with each request; empty = none.
    """

    url: str
    token: str = field(default="", repr=False)

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """One request over a connection of its own."""
        connection, response = self.open(method, path, body, headers)
        try:
            given = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, given, response.read())
        finally:
            connection.close()

    def open(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[HTTPConnection, Any]:
        """The same, up to the head of the answer; the caller closes the connection."""
        parts = urlsplit(self.url)
        assert parts.hostname
        connection = HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE.answer_s)
        given = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        sent = None if body is None else json.dumps(body)
        connection.request(method, parts.path + path, sent, {**given, **(headers or {})})
        return connection, connection.getresponse()

    def get(self, path: str, status: int = 200) -> Any:
        """The JSON of an answer."""
        answer = self.ask("GET", path)
        assert answer.status == status, f"GET {path}: {answer.status} {answer.body!r:.600}"
        return answer.json

    def post(self, path: str, body: Any, status: int = 202) -> Any:
        """The JSON of an answer to a POST."""
        answer = self.ask("POST", path, body)
        assert answer.status == status, f"POST {path}: {answer.status} {answer.body!r:.600}"
        return answer.json

    def completed(self, path: str) -> Any:
        """The outcome of an operation, when it has one."""

        def outcome() -> Any:
            told = self.get(path)
            return told if told["status"]["id"] == "COMPLETED" else None

        return wait_until(outcome, f"the operation {path}")["operation"]

    def state(self, job_id: str) -> str:
        """State of a job."""
        return str(self.get(f"/jobs/{job_id}/status")["status"])

    def await_state(self, job_id: str, *wanted: str) -> str:
        """The state of a job once it is one of these."""
        states: list[str] = []

        def reached() -> str | None:
            states.append(self.state(job_id))
            return states[-1] if states[-1] in wanted else None

        try:
            return wait_until(reached, f"job {job_id} to be {' or '.join(wanted)}")
        except AssertionError:
            failures = self.get(f"/jobs/{job_id}/exceptions")["exceptionHistory"]["entries"]
            raise AssertionError(f"job {job_id} is {states[-1]}: {failures}") from None


@dataclass(frozen=True)
class Served:
    """A standalone JobManager that serves."""

    #: ``host:port``
    address: str
    web_address: str
    read_token: str
    write_token: str

    @classmethod
    def below(cls, directory: Path) -> Served | None:
        """Return what one has published that has ``io.tmp.dirs`` there; None = not all of it yet."""
        for file in directory.glob("yarnflow-*/standalone-*/rest-tokens.json"):
            master = file.with_name("jobmanager.json")
            if master.exists():
                told, tokens = json.loads(master.read_text()), json.loads(file.read_text())
                return cls(told["address"], told["web_address"], tokens["read"], tokens["write"])
        return None

    @property
    def rest(self) -> Rest:
        """A client that may write."""
        return Rest(self.web_address, self.write_token)


@dataclass(frozen=True)
class Event:
    """One server-sent event."""

    id: str
    kind: str
    data: Any


class Follower:
    """Reads the events of a job in a thread, until its stream ends or :meth:`leave`.

    Parameters
    ----------
    last_event_id : str
        The last one seen by an earlier follower; empty = none.
    """

    def __init__(self, rest: Rest, job_id: str, last_event_id: str = "") -> None:
        self.events: list[Event] = []
        #: the server has ended it
        self.ended = threading.Event()
        self._left = False
        parts = urlsplit(rest.url)
        assert parts.hostname
        self._connection = socket.create_connection((parts.hostname, parts.port or 80), PATIENCE.answer_s)
        head = [f"GET {parts.path}/jobs/{job_id}/events HTTP/1.0", f"Authorization: Bearer {rest.token}"]
        head += [f"Last-Event-ID: {last_event_id}"] if last_event_id else []
        self._connection.sendall("".join(f"{line}\r\n" for line in [*head, ""]).encode())
        self._lines = self._connection.makefile("rb")
        status, *headers = iter(self._lines.readline, b"\r\n")
        assert status.split()[1] == b"200", status + self._lines.read()
        assert any(header.lower().startswith(b"content-type: text/event-stream") for header in headers)
        threading.Thread(target=self._read, daemon=True).start()

    def of(self, kind: str) -> list[Any]:
        """Data of the events of a kind so far."""
        return [event.data for event in self.events if event.kind == kind]

    @property
    def states(self) -> list[str]:
        """States so far."""
        return [data["state"] for data in self.of("state")]

    def leave(self) -> str:
        """Lose the connection; the id of the last event."""
        self._left = True
        self._connection.shutdown(socket.SHUT_RDWR)
        return self.events[-1].id

    def _read(self) -> None:
        with self._connection, self._lines:
            try:
                for event in _events(self._lines):
                    self.events.append(event)
            except OSError:
                self._left = True
        if not self._left:
            self.ended.set()


def _events(lines: Iterable[bytes]) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for line in lines:
        text = line.decode().rstrip("\n")
        if text:
            name, _, value = text.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield Event(fields["id"], fields["event"], json.loads(fields["data"]))
            fields = {}
        else:
            fields = {}  # a comment, or how soon to come back
