"""Which names mean this machine only, and what is bound to for them."""

from __future__ import annotations

import pytest

from yarnflow.core.hosts import bind_address, is_loopback


@pytest.mark.parametrize(
    ("host", "bound"),
    [
        ("localhost", "127.0.0.1"),
        ("LOCALHOST", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.1.1", "127.0.1.1"),
        ("::1", "127.0.0.1"),
        ("[::1]", "127.0.0.1"),
    ],
)
def test_loopback(host: str, bound: str) -> None:
    assert is_loopback(host)
    assert bind_address(host) == bound


@pytest.mark.parametrize("host", ["worker7", "10.0.0.1", "localhost.example.org", "0.0.0.0", "127.0.0.1.org"])
def test_reached_from_elsewhere(host: str) -> None:
    assert not is_loopback(host)
    assert bind_address(host) == "0.0.0.0"
