"""The web server over a real socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from yarnflow.errors import PortUnavailable
from yarnflow.rest.routes import JSON, Answer, Routes
from yarnflow.rest.server import WebServer


class Echo(Routes):
    """Answers with what was asked."""

    def __init__(self) -> None: ...

    def answer(self, method: str, target: str) -> Answer:
        if target == "/bug":
            raise RuntimeError("the secret is 42")
        return Answer(405 if method == "POST" else 200, JSON, json.dumps([method, target]).encode())


@pytest.fixture
def server() -> Iterator[WebServer]:
    server = WebServer("127.0.0.1", 0, Echo())
    server.start()
    yield server
    server.stop()


@pytest.fixture
def connection(server: WebServer) -> Iterator[HTTPConnection]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
    yield connection
    connection.close()


def test_get_twice_on_one_connection(connection: HTTPConnection) -> None:
    for path in ("/jobs/overview", "/overview?x=1"):
        connection.request("GET", path)
        response = connection.getresponse()
        assert (response.status, json.load(response)) == (200, ["GET", path])
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Content-Type"] == JSON


def test_head_has_no_body(connection: HTTPConnection) -> None:
    connection.request("HEAD", "/overview")
    response = connection.getresponse()
    assert (response.status, response.read()) == (200, b"")
    assert int(response.headers["Content-Length"]) > 0


def test_post_is_not_allowed(connection: HTTPConnection) -> None:
    connection.request("POST", "/overview", body=b"x" * 1000)
    response = connection.getresponse()
    assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")
    response.read()


def test_an_unknown_method_is_answered_in_json(connection: HTTPConnection) -> None:
    connection.request("BREW", "/overview")
    response = connection.getresponse()
    assert response.status == 501
    assert "BREW" in json.load(response)["errors"][0]


def test_a_bug_is_not_shown(connection: HTTPConnection) -> None:
    connection.request("GET", "/bug")
    response = connection.getresponse()
    assert response.status == 500
    assert "secret" not in response.read().decode()


def test_noise_does_not_end_the_server(server: WebServer, connection: HTTPConnection) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as noise:
        noise.sendall(b"\x16\x03\x01\x00\xff\r\n\r\n")
        while noise.recv(4096):
            pass
    connection.request("GET", "/overview")
    assert connection.getresponse().status == 200


def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortUnavailable, match=f"127.0.0.1:{port}: .*rest.port"):
            WebServer("127.0.0.1", port, Echo())
