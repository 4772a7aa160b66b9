"""Under which names an interface may be asked for."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from tests.rest.asgi import ask
from tests.rest.bench import NEW, Bench
from tests.rest.history.bench import HistoryBench
from yarnflow.rest.access import hosts
from yarnflow.rest.access.hosts import AllowedHosts, NameKind

PROXY = "a1" * 32


def kind(allowed: AllowedHosts, header: str) -> NameKind:
    return asyncio.run(allowed.kind(header))


@pytest.mark.parametrize(
    "header",
    [
        "", "localhost", "LocalHost:8081", "localhost.", "a.localhost", "127.0.0.1:8081", "127.9.9.9",
        "[::1]:8081", "10.1.2.3:8081", "[fe80::1]", "jm.example:8081", "JM.example", "8.8.8.8",
    ],
)  # fmt: skip
def test_own_names_and_addresses(header: str) -> None:
    assert kind(AllowedHosts(["jm.example", ""], ""), header) is NameKind.OWN


def test_names_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "box.lan")
    monkeypatch.setattr(socket, "getfqdn", lambda: "box.corp.example.")
    hosts._full_name.cache_clear()
    allowed = AllowedHosts([], "")
    assert all(kind(allowed, name) is NameKind.OWN for name in ("box", "box.lan:1", "box.corp.example"))
    hosts._full_name.cache_clear()


@pytest.mark.parametrize(
    "header",
    ["evil.example:8081", "localhost.evil.example", "127.0.0.1.evil.example", "jm.example.evil", "0x7f.1"],
)
def test_foreign_names(header: str) -> None:
    assert kind(AllowedHosts(["jm.example"], "other.example"), header) is NameKind.FOREIGN


@pytest.mark.parametrize(
    "configured, header, allowed",
    [
        ("gate.example, Other.Example.", "other.example:80", True),
        (".ingress.example", "a.b.ingress.example", True),
        (".ingress.example", "ingress.example", False),
        (".ingress.example", "evilingress.example", False),
        ("*", "evil.example", True),
    ],
)
def test_names_of_the_option(configured: str, header: str, allowed: bool) -> None:
    found = kind(AllowedHosts([], configured), header)
    assert found is (NameKind.CONFIGURED if allowed else NameKind.FOREIGN)


@pytest.mark.parametrize("path", ["/", "/dashboard/app.js", "/overview", "/nothing", f"/jobs/{NEW}/events"])
def test_no_path_answers_to_a_foreign_name(path: str) -> None:
    bench = Bench(proxy_path=PROXY)
    answer = ask(bench.app, "GET", path, headers={"host": "evil.example"})
    assert answer.status == 421 and "rest.allowed-hosts" in answer.error
    # the proxy passes on its own
    assert ask(bench.app, "GET", f"/{PROXY}/overview", headers={"host": "rm.example:8088"}).status == 200


def test_a_foreign_page_changes_nothing_by_its_own_name() -> None:
    bench = Bench()
    own = {"host": "evil.example", "origin": "http://evil.example", "sec-fetch-site": "same-origin"}
    assert ask(bench.app, "PATCH", f"/jobs/{NEW}", headers=own).status == 421
    assert ask(bench.app, "POST", "/jars/upload", headers=own).status == 421
    assert not bench.view.canceled


def test_the_history_server_has_the_same_check(tmp_path: Path) -> None:
    history = HistoryBench(tmp_path)
    assert ask(history.app, "GET", "/jobs/overview").status == 200
    for path in ("/", "/jobs/overview"):
        assert ask(history.app, "GET", path, headers={"host": "evil.example"}).status == 421
