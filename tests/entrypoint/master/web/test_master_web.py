"""The REST interface of a master: its ports, its tokens, and who may read without one."""

from __future__ import annotations

import json
import socket
import stat
from pathlib import Path

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.entrypoint.master.web.master_web import TOKENS_FILE, MasterWeb, rest_ports
from yarnflow.errors import PortUnavailable
from yarnflow.rest.access.tokens import Access, token

SECRET = b"0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    "options, ports",
    [
        ({}, "8081-8180"),
        ({"rest.port": "9000"}, "9000"),
        ({"rest.port": "0"}, "0"),
        ({"rest.port": "-1"}, ""),
        ({"rest.port": "9000", "rest.bind-port": "50100-50200"}, "50100-50200"),
        ({"rest.bind-port": "7000"}, "7000"),
        ({"rest.port": "-1", "rest.bind-port": "7000"}, ""),
    ],
)
def test_ports(options: dict[str, str], ports: str) -> None:
    assert rest_ports(Configuration.from_dict(options, "test")) == ports


def web(tmp_path: Path, **options: str) -> MasterWeb:
    settings = Configuration.from_dict(
        {key.replace("_", "."): value for key, value in {"rest_port": "0", **options}.items()}, "test"
    )

    async def application(scope: object, receive: object, send: object) -> None:
        raise AssertionError("nobody asks")

    return MasterWeb(settings, tmp_path, SECRET, "127.0.0.1", False, lambda: application)


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        made = web(tmp_path, rest_port=str(port))
        with pytest.raises(PortUnavailable, match=f"no port: .*{port}.*rest.bind-port"):
            made.start()
        made.stop()


def test_without_a_port_there_is_nothing(tmp_path: Path) -> None:
    made = web(tmp_path, rest_port="-1")
    made.start()
    assert made.port == 0
    made.stop()


def test_tokens_are_written_for_the_owner_alone(tmp_path: Path) -> None:
    made = web(tmp_path)
    made._write_tokens()
    file = tmp_path / TOKENS_FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {each.value: token(SECRET, each) for each in Access}
    assert made.token(Access.READ) == token(SECRET, Access.READ)


def test_without_authentication_there_are_no_tokens(tmp_path: Path) -> None:
    made = web(tmp_path, rest_authentication_enabled="false")
    made._write_tokens()
    assert not (tmp_path / TOKENS_FILE).exists()
    assert made.token(Access.WRITE) == "" and not made.authentication.is_needed


@pytest.mark.parametrize("programs", ["true", "false"])
def test_what_no_authentication_means_is_said_at_start(
    tmp_path: Path, programs: str, caplog: pytest.LogCaptureFixture
) -> None:
    made = web(tmp_path, rest_authentication_enabled="false", web_submit_enable=programs)
    made.start()
    made.stop()
    (said,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "rest.authentication.enabled is false" in said and "127.0.0.1:" in said
    assert ("run programs as its user" in said) is (programs == "true")
