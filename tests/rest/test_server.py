"""HTTP over a real socket: what clients may send and hold."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection, HTTPResponse
from typing import Any

import pytest

from tests.patience import PATIENCE
from tests.rest.bench import HOSTS, NEW, Bench
from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointStatus,
    CheckpointTrigger,
)
from yarnflow.core.states import JobStatus
from yarnflow.rest.access.hosts import AllowedHosts
from yarnflow.rest.access.tokens import Access, token
from yarnflow.rest.framework import application, proxy, server
from yarnflow.rest.framework.authentication import Authentication
from yarnflow.rest.framework.proxy import LeaderProxy
from yarnflow.rest.framework.server import WebServer, _Protocol
from yarnflow.rest.handlers import events

SECRET = b"0123456789abcdef0123456789abcdef"


def serve(app: Any) -> WebServer:
    made = WebServer(socket.create_server(("127.0.0.1", 0)), app, HOSTS)
    made.start()
    return made


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def web(bench: Bench) -> Iterator[WebServer]:
    made = serve(bench.app)
    yield made
    made.stop()


@pytest.fixture
def connection(web: WebServer) -> Iterator[HTTPConnection]:
    made = HTTPConnection("127.0.0.1", web.port, timeout=PATIENCE.answer_s)
    yield made
    made.close()


def raw(web: WebServer, sent: bytes) -> bytes:
    """All that comes back until the server closes."""
    received = b""
    with socket.create_connection(("127.0.0.1", web.port), timeout=PATIENCE.answer_s) as connection:
        connection.sendall(sent)
        while part := connection.recv(65_536):
            received += part
    return received


def test_get_twice_on_one_connection(connection: HTTPConnection) -> None:
    for path in ("/jobs/overview", "/v1/overview?x=1"):
        connection.request("GET", path)
        response = connection.getresponse()
        assert response.status == 200 and json.load(response)
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Content-Type"] == "application/json; charset=UTF-8"
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]


def test_no_part_of_an_answer_waits_for_another(
    web: WebServer, connection: HTTPConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[socket.socket] = []
    made = _Protocol.connection_made

    def noted(self: _Protocol, transport: asyncio.Transport) -> None:
        made(self, transport)
        begun.append(transport.get_extra_info("socket"))

    monkeypatch.setattr(_Protocol, "connection_made", noted)
    connection.request("GET", "/config")
    assert connection.getresponse().status == 200
    assert [each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for each in begun] == [1]


def test_head_has_no_body(connection: HTTPConnection) -> None:
    connection.request("HEAD", "/overview")
    response = connection.getresponse()
    assert (response.status, response.read()) == (200, b"")
    assert int(response.headers["Content-Length"]) > 0


@pytest.mark.parametrize("method", ["POST", "BREW", "OPTIONS", "TRACE"])
def test_a_method_that_is_none(connection: HTTPConnection, method: str) -> None:
    connection.request(method, "/overview")
    response = connection.getresponse()
    assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")
    assert method in json.load(response)["errors"][0]


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x00\xff\r\n\r\n",
        b"GET /over view HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 20_000,
        b"GET /overview HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /cluster HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /overview HTTP/1.1\r\n\r\n",
    ],
)
def test_noise_is_answered_in_json_and_ends_nothing(
    web: WebServer, connection: HTTPConnection, sent: bytes
) -> None:
    head, _, body = raw(web, sent).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400"), head
    assert json.loads(body)["errors"]
    connection.request("GET", "/overview")
    assert connection.getresponse().status == 200


@pytest.mark.parametrize("name", ["path", "header"])
def test_a_head_that_is_too_long(connection: HTTPConnection, name: str) -> None:
    filling = "a" * 17_000
    path, headers = ("/" + filling, {}) if name == "path" else ("/overview", {"X": filling})
    connection.request("GET", path, headers=headers)
    assert connection.getresponse().status == 431


def test_a_body_without_an_end_is_cut_off(web: WebServer) -> None:
    chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
    request = f"POST /jobs/{NEW}/stop HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", web.port), timeout=PATIENCE.answer_s) as connection:
        connection.sendall(request)
        for _ in range(17):
            connection.sendall(chunk)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 413")


def test_a_slow_body_is_given_up(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application, "BODY_TIMEOUT_S", 0.05)
    request = f"POST /jobs/{NEW}/stop HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n123".encode()
    with socket.create_connection(("127.0.0.1", web.port), timeout=PATIENCE.answer_s) as connection:
        connection.sendall(request)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("sent", [b"", b"GET /over", b"GET /overview HTTP/1.1\r\nHost: x\r\n"])
def test_a_connection_without_a_request_is_closed(
    web: WebServer, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(server, "IDLE_TIMEOUT_S", 0.05)
    with socket.create_connection(("127.0.0.1", web.port), timeout=PATIENCE.answer_s) as connection:
        connection.sendall(sent)
        with_reset = b""
        try:
            with_reset = connection.recv(1)
        except ConnectionResetError:
            pass
        assert with_reset == b""


def test_a_head_that_comes_byte_by_byte_is_given_up(web: WebServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte does not begin the time anew."""
    monkeypatch.setattr(server, "IDLE_TIMEOUT_S", 0.2)
    pause = threading.Event()
    with socket.create_connection(("127.0.0.1", web.port), timeout=PATIENCE.answer_s) as connection:
        with pytest.raises(OSError):
            for _ in range(3_000):
                connection.sendall(b"G")
                pause.wait(0.01)


def test_too_many_connections_are_closed_at_once(
    web: WebServer, connection: HTTPConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 2)
    connection.request("GET", "/overview")
    assert connection.getresponse().read()
    others = [socket.create_connection(("127.0.0.1", web.port), timeout=PATIENCE.answer_s) for _ in range(4)]
    try:
        closed = 0
        for other in others[1:]:
            try:
                closed += other.recv(1) == b""
            except ConnectionResetError:
                closed += 1
        assert closed == 3
        connection.request("GET", "/overview")
        assert connection.getresponse().status == 200, "who was there first stays"
    finally:
        for other in others:
            other.close()


def test_requests_that_would_wait_too_long_are_told_to_come_again(
    web: WebServer, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "MAX_WAITING", 1)
    free = threading.Event()
    busy = threading.Semaphore(0)

    def slow() -> Any:
        busy.release()
        free.wait(PATIENCE.thread_s)
        return []

    bench.diagnostics.log_files = slow  # type: ignore[method-assign]
    connections = [HTTPConnection("127.0.0.1", web.port, timeout=PATIENCE.answer_s) for _ in range(4)]
    for connection in connections[:3]:
        connection.request("GET", "/jobmanager/logs")
    for _ in range(2):
        assert busy.acquire(timeout=PATIENCE.thread_s)
    for _ in range(3_000):
        if bench.pool.under_way == 3:
            break
        threading.Event().wait(0.01)
    connections[3].request("GET", "/jobmanager/logs")
    refused = connections[3].getresponse()
    assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
    free.set()
    assert [connection.getresponse().status for connection in connections[:3]] == [200, 200, 200]
    for connection in connections:
        connection.close()


def test_a_task_manager_that_does_not_answer_holds_up_nothing_else(
    web: WebServer, bench: Bench, connection: HTTPConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, asked = threading.Event(), threading.Semaphore(0)

    class Silent:
        def log_files(self) -> Any:
            asked.release()
            free.wait(PATIENCE.thread_s)
            return []

    monkeypatch.setattr(bench.view, "task_manager_diagnostics", lambda _info: Silent())
    waiting = [HTTPConnection("127.0.0.1", web.port, timeout=PATIENCE.answer_s) for _ in range(4)]
    for each in waiting:
        each.request("GET", "/taskmanagers/h:container_1/logs")
    for _ in range(2):
        assert asked.acquire(timeout=PATIENCE.thread_s)
    connection.request("PATCH", f"/jobs/{NEW}")
    assert connection.getresponse().status == 202
    assert not free.is_set()
    free.set()
    assert [each.getresponse().status for each in waiting] == [200] * 4
    for each in waiting:
        each.close()


def test_many_clients_at_once(web: WebServer) -> None:
    statuses: list[int] = []

    def ask() -> None:
        connection = HTTPConnection("127.0.0.1", web.port, timeout=PATIENCE.answer_s)
        for _ in range(5):
            connection.request("GET", "/jobs/overview")
            response = connection.getresponse()
            response.read()
            statuses.append(response.status)
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE.thread_s)
    assert statuses.count(200) == 80


# --- events ---


def read_events(response: HTTPResponse, count: int) -> list[tuple[str, str, Any]]:
    """``(name, id, data)`` of the next events."""
    found: list[tuple[str, str, Any]] = []
    fields: dict[str, str] = {}
    while len(found) < count:
        read = response.readline()
        assert read, f"the stream ended after {found}"
        line = read.decode().rstrip("\n")
        if not line:
            if "data" in fields:
                found.append((fields["event"], fields["id"], json.loads(fields["data"])))
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            fields[name] = value
    return found


def test_events_of_a_job(web: WebServer, bench: Bench, connection: HTTPConnection) -> None:
    """1. what there is  2. what changes  3. the end, with which the stream ends."""
    connection.request("GET", f"/jobs/{NEW}/events")
    response = connection.getresponse()
    assert response.headers["Content-Type"].startswith("text/event-stream")
    first = read_events(response, 7)
    assert [name for name, _, _ in first] == ["checkpoint"] * 5 + ["state", "progress"]
    assert [data["checkpoint"]["id"] for name, _, data in first[:5]] == [20, 21, 22, 23, 24]
    assert first[5][2]["state"] == "RUNNING" and first[6][2]["queries"][0]["name"] == "q"
    bench.view.change(NEW, JobStatus.FINISHED)
    bench.changes.changed(NEW)
    (state, _, ended), (progress, _last_id, _) = read_events(response, 2)
    assert (state, ended["state"], progress) == ("state", "FINISHED", "progress")
    assert response.read() == b"", "it ends with the job"


def test_a_client_that_comes_back_misses_nothing(
    web: WebServer, bench: Bench, connection: HTTPConnection
) -> None:
    connection.request("GET", f"/jobs/{NEW}/events")
    *_, (_, last_id, _) = read_events(connection.getresponse(), 7)
    connection.close()
    bench.view.change(NEW, JobStatus.CANCELED)
    connection.request("GET", f"/jobs/{NEW}/events", headers={"Last-Event-ID": last_id})
    names = [(name, data.get("state")) for name, _, data in read_events(connection.getresponse(), 3)]
    assert ("state", "CANCELED") in names
    assert names[0][0] == "checkpoint", "the one in progress is told again"


@pytest.mark.parametrize("running_since_ms, states", [(970_000, []), (990_000, ["RUNNING"])])
def test_a_client_that_comes_back_is_told_a_state_it_knows_only_if_there_was_another(
    running_since_ms: int, states: list[str], web: WebServer, bench: Bench, connection: HTTPConnection
) -> None:
    connection.request("GET", f"/jobs/{NEW}/events")
    *_, (_, last_id, _) = read_events(connection.getresponse(), 7)
    connection.close()
    # a batch later, or after a restart
    bench.view.change(NEW, JobStatus.RUNNING, running_since_ms)
    connection.request("GET", f"/jobs/{NEW}/events", headers={"Last-Event-ID": last_id})
    told = read_events(connection.getresponse(), 2 + len(states))
    assert [data["state"] for name, _, data in told if name == "state"] == states
    assert told[-1][0] == "progress"


def test_all_that_failed_before_they_had_a_number_are_told(bench: Bench) -> None:
    """1. two at once  2. a later one, and nothing twice."""
    job, known = bench.view.job_details(NEW), bench.view.job_checkpoints(NEW)
    follower = events.Follower()
    list(follower.news(job, known, 0, progress=False))
    told = []
    for ends_ms in ([5, 5], [7, 5, 5]):
        failed = tuple(
            CheckpointInfo(
                0, CheckpointKind.SAVEPOINT, CheckpointStatus.FAILED, CheckpointTrigger.SAVEPOINT, 1,
                end_ms=end_ms, failure="the driver was lost",
            )
            for end_ms in ends_ms
        )  # fmt: skip
        made = follower.news(job, replace(known, history=(*failed, *known.history)), 0, progress=False)
        told.append(sum(b'"id":0,' in event for event in made))
    assert told == [2, 1]


def test_nobody_hears_of_a_job_that_there_is_not(connection: HTTPConnection) -> None:
    connection.request("GET", f"/jobs/{'c' * 32}/events")
    assert connection.getresponse().status == 404


def test_the_head_of_a_stream_is_no_stream(connection: HTTPConnection, bench: Bench) -> None:
    connection.request("HEAD", f"/jobs/{NEW}/events")
    response = connection.getresponse()
    assert (response.status, response.read(), bench.pool.streams) == (200, b"", 0)


def test_heartbeats(web: WebServer, connection: HTTPConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_S", 0.05)
    connection.request("GET", f"/jobs/{NEW}/events")
    response = connection.getresponse()
    read_events(response, 7)
    assert response.readline() == b": heartbeat\n"


def test_streams_are_bounded(
    web: WebServer, bench: Bench, connection: HTTPConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application, "MAX_STREAMS", 1)
    connection.request("GET", f"/jobs/{NEW}/events")
    read_events(connection.getresponse(), 7)
    other = HTTPConnection("127.0.0.1", web.port, timeout=PATIENCE.answer_s)
    other.request("GET", f"/jobs/{NEW}/events")
    assert other.getresponse().status == 503
    other.close()
    connection.close()
    for _ in range(3_000):
        if bench.pool.streams == 0:
            break
        threading.Event().wait(0.01)
        bench.changes.changed(NEW)
    assert bench.pool.streams == 0, "a client that went away is still counted"


def test_a_job_nobody_follows_wakes_nobody() -> None:
    bench = Bench()
    bench.changes.changed(NEW)

    async def follow() -> bool:
        async with bench.changes.following(NEW) as changed:
            bench.changes.changed("other")
            await asyncio.sleep(0)
            before = changed.is_set()
            bench.changes.changed(NEW)
            await asyncio.wait_for(changed.wait(), PATIENCE.answer_s)
            return before

    assert asyncio.run(follow()) is False


# --- a standby ---


@pytest.fixture
def standby(web: WebServer) -> Iterator[HTTPConnection]:
    made = serve(LeaderProxy(lambda: f"http://127.0.0.1:{web.port}", Authentication()))
    connection = HTTPConnection("127.0.0.1", made.port, timeout=PATIENCE.answer_s)
    yield connection
    connection.close()
    made.stop()


@pytest.mark.parametrize(
    "method, target, body",
    [
        ("GET", "/jobs/overview?x=1", None),
        ("GET", "/v1/jobs/zz", None),
        ("GET", "/nothing%20there", None),
        ("PATCH", f"/jobs/{NEW}?mode=cancel", None),
        ("POST", f"/jobs/{NEW}/savepoints", b'{"triggerId": "11111111111111111111111111111111"}'),
        ("POST", f"/jobs/{NEW}/savepoints", b"{"),
        ("GET", "/openapi.json", None),
    ],
)
def test_a_standby_answers_as_the_leader(
    standby: HTTPConnection, connection: HTTPConnection, method: str, target: str, body: bytes | None
) -> None:
    said = []
    for each in (standby, connection):
        each.request(method, target, body)
        response = each.getresponse()
        headers = {name.lower(): value for name, value in response.headers.items() if name.lower() != "date"}
        headers.pop("connection", None)
        said.append((response.status, response.read(), headers))
    assert said[0] == said[1]


def test_events_pass_a_standby(standby: HTTPConnection, bench: Bench) -> None:
    standby.request("GET", f"/jobs/{NEW}/events")
    response = standby.getresponse()
    read_events(response, 7)
    bench.view.change(NEW, JobStatus.FINISHED)
    bench.changes.changed(NEW)
    assert read_events(response, 1)[0][2]["state"] == "FINISHED"


def test_a_client_of_http_1_0_need_not_say_a_host(standby: HTTPConnection) -> None:
    with socket.create_connection((standby.host, standby.port), 20) as connection:
        connection.sendall(b"GET /overview HTTP/1.0\r\n\r\n")
        assert connection.makefile("rb").readline().split()[1] == b"200"


def test_a_range_passes_a_standby(standby: HTTPConnection) -> None:
    standby.request("GET", "/taskmanagers/h:container_1/log", headers={"Range": "bytes=2-4"})
    response = standby.getresponse()
    assert (response.status, response.read()) == (206, b"234")


@pytest.mark.parametrize(
    "body, status",
    [(b"x", 400), ([b"x", b"y"], 400), (b"x" * 3_000_000, 413)],
    ids=["whole", "chunks", "long"],
)
def test_a_standby_passes_on_what_the_leader_says_of_a_body(
    standby: HTTPConnection, connection: HTTPConnection, body: Any, status: int
) -> None:
    """Also where the leader reads nothing of it."""
    statuses = []
    for each in (connection, standby):
        each.request("POST", f"/jobs/{NEW}/stop", body)
        statuses.append(each.getresponse().status)
    assert statuses == [status, status]


def test_a_slow_body_is_the_clients_fault_at_a_standby_too(
    standby: HTTPConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "_BODY_TIMEOUT_S", 0.05)
    request = f"POST /jobs/{NEW}/stop HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n123".encode()
    with socket.create_connection((standby.host, standby.port), timeout=PATIENCE.answer_s) as connection:
        connection.sendall(request)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 408")


def test_a_standby_forgets_a_client_that_has_gone(
    standby: HTTPConnection, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the leader has nothing to tell it."""
    monkeypatch.setattr(proxy, "MAX_FORWARDED", 1)
    standby.request("GET", f"/jobs/{NEW}/events")
    read_events(standby.getresponse(), 7)
    assert bench.pool.streams == 1
    standby.close()
    for _ in range(3_000):
        standby.request("GET", "/overview")
        status = standby.getresponse().status
        standby.close()
        if status == 200 and bench.pool.streams == 0:
            break
        threading.Event().wait(0.01)
    assert (status, bench.pool.streams) == (200, 0), "it is still followed"


@pytest.mark.parametrize("leader", ["", "http://127.0.0.1:1"])
def test_a_standby_without_a_leader(leader: str) -> None:
    made = serve(LeaderProxy(lambda: leader, Authentication()))
    connection = HTTPConnection("127.0.0.1", made.port, timeout=PATIENCE.answer_s)
    connection.request("GET", "/overview")
    response = connection.getresponse()
    assert (response.status, response.headers["Retry-After"]) == (503, "1")
    assert "this master is a standby" in json.load(response)["errors"][0]
    connection.close()
    made.stop()


@pytest.mark.parametrize(
    "origin, status", [("http://standby.example", 202), ("http://evil.example", 403), ("null", 403)]
)
def test_a_standby_is_asked_by_its_own_name_and_its_pages_are_the_leaders(
    web: WebServer, bench: Bench, origin: str, status: int
) -> None:
    proxy_of_leader = LeaderProxy(lambda: f"http://127.0.0.1:{web.port}", Authentication())
    made = WebServer(
        socket.create_server(("127.0.0.1", 0)), proxy_of_leader, AllowedHosts(["standby.example"], "")
    )
    made.start()
    connection = HTTPConnection("127.0.0.1", made.port, timeout=PATIENCE.answer_s)
    connection.request("PATCH", f"/jobs/{NEW}", headers={"Host": "standby.example", "Origin": origin})
    assert connection.getresponse().status == status
    assert bench.view.canceled == ([NEW] if status == 202 else [])
    connection.close()
    made.stop()


def test_standbys_do_not_send_a_request_round_for_ever() -> None:
    ports: list[int] = []
    made = serve(LeaderProxy(lambda: f"http://127.0.0.1:{ports[0]}", Authentication()))
    ports.append(made.port)
    connection = HTTPConnection("127.0.0.1", made.port, timeout=PATIENCE.answer_s)
    connection.request("GET", "/overview")
    assert connection.getresponse().status == 503
    connection.close()
    made.stop()


def test_who_comes_through_yarns_proxy_to_a_standby_may_read_from_the_leader() -> None:
    leader = serve(Bench(SECRET).app)
    passed_on = WebServer(
        socket.create_server(("127.0.0.1", 0)),
        LeaderProxy(lambda: f"http://127.0.0.1:{leader.port}", Authentication(SECRET)),
        HOSTS,
        "by-proxy",
    )
    passed_on.start()
    direct = HTTPConnection("127.0.0.1", leader.port, timeout=PATIENCE.answer_s)
    through = HTTPConnection("127.0.0.1", passed_on.port, timeout=PATIENCE.answer_s)
    write = {"Authorization": f"Bearer {token(SECRET, Access.WRITE)}"}
    for connection, method, headers, status in (
        (direct, "GET", {}, 401),
        (through, "GET", {}, 200),
        (through, "PATCH", {}, 403),
        (through, "PATCH", write, 202),
        # the leader knows the origin of no page of the proxy's
        (through, "PUT", {**write, "Origin": "http://rm:8088"}, 202),
    ):
        prefix = "/by-proxy" if connection is through else ""
        path = {"GET": "/overview", "PATCH": f"/jobs/{NEW}", "PUT": f"/jobs/{NEW}/yarn-cancel"}[method]
        connection.request(method, f"{prefix}{path}", headers=headers)
        response = connection.getresponse()
        response.read()
        assert response.status == status, (method, headers)
    for each in (direct, through):
        each.close()
    leader.stop()
    passed_on.stop()
