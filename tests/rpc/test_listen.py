"""Where servers listen."""

from __future__ import annotations

import logging
import socket

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.errors import InvalidOption
from yarnflow.rpc.listen import bind, bind_host, translated_addresses


@pytest.mark.parametrize(
    ("configured", "advertised", "expected"),
    [
        ("", "localhost", "127.0.0.1"),
        ("", "127.0.0.1", "127.0.0.1"),
        ("", "::1", "::1"),
        ("", "worker-7.example.com", "worker-7.example.com"),
        ("localhost", "worker-7.example.com", "127.0.0.1"),
        ("0.0.0.0", "localhost", "0.0.0.0"),
        ("10.0.0.3", "worker-7.example.com", "10.0.0.3"),
    ],
)
def test_what_is_not_advertised_is_listened_on_only_when_told(
    configured: str, advertised: str, expected: str
) -> None:
    assert bind_host(configured, advertised) == expected


def test_own_name_that_means_loopback_is_said(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.1.1", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with caplog.at_level(logging.WARNING):
        bind("worker-7", "0").close()
        assert "Only this machine reaches worker-7, which means 127.0.1.1 here" in caplog.text
        caplog.clear()
        bind("localhost", "0").close()
        assert caplog.text == ""


def test_translated_addresses_have_a_host_and_a_port() -> None:
    def named(text: str) -> tuple[str, ...]:
        return translated_addresses(Configuration.from_dict({"security.translated-addresses": text}, "test"))

    assert named("") == ()
    assert named("master:6123, [::1]:6123,") == ("master:6123", "[::1]:6123")
    assert named("10.0.0.7:*") == ("10.0.0.7:*",)
    for wrong in ("master", ":6123", "master:0", "master:x"):
        with pytest.raises(InvalidOption, match=f"translated-addresses has '{wrong}'; write host:port"):
            named(f"other:1,{wrong}")
