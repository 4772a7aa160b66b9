"""REST of a standalone cluster with its default options: what comes in without a token, and by foreign names.

It listens at all addresses, so that others than this machine's own loopback can be tried, too.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psutil
import pytest

from integration.conftest import Commands, commands_in, wait_until
from integration.rest.client import Answer, Rest, Served
from yarnflow.core.hosts import is_loopback
from yarnflow.rest.access.tickets import Purpose, issue
from yarnflow.rest.access.tokens import Access
from yarnflow.rest.framework.parameters import Parameter
from yarnflow.rest.framework.route import Route
from yarnflow.rest.web import ROUTES

#: of parameters of paths: one of them has the form that is wanted
_VALUES: Final = ("0" * 32, "0", "app.js", "core", "x.py", "x")
_WRITES: Final = [route for route in ROUTES if route.writes]
#: a page of it has had its name changed to an address of the JobManager
_EVIL: Final = "evil.example"
_REBOUND: Final = {
    "Host": f"{_EVIL}:8081", "Origin": f"http://{_EVIL}:8081", "Sec-Fetch-Site": "same-origin",
}  # fmt: skip


@dataclass(frozen=True)
class Victim:
    """A cluster, and clients that have nothing."""

    commands: Commands
    directory: Path
    served: Served

    @property
    def port(self) -> int:
        """Return that of REST."""
        port = urlsplit(self.served.web_address).port
        assert port
        return port

    @property
    def stranger(self) -> Rest:
        """Return a client without a token, over the loopback interface."""
        return Rest(f"http://127.0.0.1:{self.port}")

    @property
    def link(self) -> str:
        """Return what ``yarnflow dashboard`` prints to the cluster's owner."""
        told = self.commands.run("dashboard", "-m", self.served.address, f"-Dio.tmp.dirs={self.directory}")
        assert told.process.returncode == 0, told.stderr
        return told.stdout.strip()

    def use(self, code: str) -> Answer:
        """Open a link with a code."""
        return self.stranger.ask("GET", f"/?code={code}")

    def cookie(self) -> dict[str, str]:
        """Return what a browser of the owner's sends."""
        answer = self.use(_code(self.link))
        assert answer.status == 303, answer.body
        (made,) = SimpleCookie(answer.headers["set-cookie"]).values()
        return {"Cookie": f"{made.key}={made.value}"}

    def logs(self) -> str:
        """Return all that its processes have logged."""
        return "".join(file.read_text(errors="replace") for file in self.directory.rglob("*.log"))


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    directory = tmp_path_factory.mktemp("rest")
    with commands_in(directory) as commands:
        ports = ("-Djobmanager.rpc.port=0", "-Drest.bind-port=0", "-Drest.bind-address=0.0.0.0")
        started = commands.start("jobmanager", f"-Dio.tmp.dirs={directory}", *ports)

        def serving() -> Served | None:
            assert started.process.poll() is None, started.stderr
            return Served.below(directory)

        yield Victim(commands, directory, wait_until(serving, "the JobManager to serve"))


@pytest.fixture
def outside(victim: Victim) -> Rest:
    """A client without a token that comes from another address, as from another machine."""
    addresses = (
        each.address for found in psutil.net_if_addrs().values() for each in found if each.family == 2
    )
    address = next((each for each in addresses if not is_loopback(each)), None)
    if address is None:
        pytest.skip("this machine has no address but loopback ones")
    return Rest(f"http://{address}:{victim.port}")


def _value(parameter: Parameter[object]) -> str:
    for value in _VALUES:
        try:
            parameter.parse(value)
        except ValueError:
            continue
        return value
    raise AssertionError(f"no value fits the parameter {parameter.name}")


def _path(route: Route) -> str:
    path = route.template
    for parameter in route.path_parameters:
        path = path.replace(f"{{{parameter.name}}}", _value(parameter))
    return path


def _code(link: str) -> str:
    found = re.search(r"[?]code=([\w-]+)", link)
    assert found, link
    return found[1]


@pytest.mark.gate
def test_nothing_is_changed_without_the_token_that_may(victim: Victim, outside: Rest) -> None:
    came_in = []
    reader = Rest(victim.stranger.url, victim.served.read_token)
    for route in _WRITES:
        for client, status in ((victim.stranger, 401), (outside, 401), (reader, 403)):
            answer = client.ask(route.method, _path(route), {})
            if answer.status != status:
                came_in.append(f"{route.method} {_path(route)}: {answer.status} by {client}")
    assert len(_WRITES) > 10 and not came_in


@pytest.mark.gate
def test_no_path_answers_to_a_foreign_name(victim: Victim) -> None:
    came_in = []
    for route in ROUTES:
        for token in ("", victim.served.write_token):
            client = Rest(victim.stranger.url, token)
            answer = client.ask(route.method, _path(route), {} if route.writes else None, _REBOUND)
            if answer.status != 421 or b"rest.allowed-hosts" not in answer.body:
                came_in.append(f"{route.method} {_path(route)}: {answer.status}")
    assert not came_in


def test_others_than_this_machine_read_nothing(victim: Victim, outside: Rest) -> None:
    came_in = []
    for route in ROUTES:
        if route.public or route.writes:
            continue
        for client, headers in (
            (outside, {}),
            (victim.stranger, {"X-Forwarded-For": "10.0.0.1"}),
            (victim.stranger, {"Forwarded": "for=10.0.0.1"}),
            (victim.stranger, {"Authorization": "Bearer wrong"}),
        ):
            answer = client.ask(route.method, _path(route), None, headers)
            if answer.status != 401:
                came_in.append(f"{route.method} {_path(route)}: {answer.status} with {headers}")
    assert not came_in


def test_this_machine_may_still_read_and_is_warned(victim: Victim) -> None:
    for _ in range(2):
        answer = victim.stranger.ask("GET", "/overview")
        assert answer.status == 200 and answer.headers["warning"].startswith("299 yarnflow ")
    assert victim.logs().count("was answered without a token") == 1
    assert "warning" not in victim.served.rest.ask("GET", "/overview").headers


def test_a_code_lets_one_browser_in_and_is_logged_nowhere(victim: Victim) -> None:
    code = _code(victim.link)
    first, second = victim.use(code), victim.use(code)
    assert (first.status, first.headers["location"], second.status) == (303, "./", 403)
    assert "set-cookie" not in second.headers
    (made,) = SimpleCookie(first.headers["set-cookie"]).values()
    assert made["httponly"] and made["samesite"].lower() == "strict" and str(victim.port) in made.key
    logs = victim.logs()
    assert code not in logs and made.value not in logs


def test_forged_and_expired_codes(victim: Victim) -> None:
    token = victim.served.write_token
    expired = issue(token, Access.WRITE, Purpose.CODE, time.time() - Purpose.CODE.value)
    guessed = issue("0" * 64, Access.WRITE, Purpose.CODE, time.time())
    session = issue(token, Access.WRITE, Purpose.SESSION, time.time())
    raised = issue(victim.served.read_token, Access.READ, Purpose.CODE, time.time()).replace("read", "write")
    for code in ("", "x", expired, guessed, session, raised):
        answer = victim.use(code)
        assert answer.status == 403 and "set-cookie" not in answer.headers, code


def test_a_cookie_lets_pages_of_the_dashboard_change_something_and_no_others(
    victim: Victim, outside: Rest
) -> None:
    cookie, path = victim.cookie(), f"/jobs/{'0' * 32}"
    own = {**cookie, "Origin": victim.stranger.url, "Sec-Fetch-Site": "same-origin"}
    # it comes in: there is no such job
    assert victim.stranger.ask("PATCH", path, None, own).status == 404
    assert outside.ask("GET", "/overview", None, cookie).status == 200
    for foreign in (
        {"Origin": f"http://{_EVIL}"},
        {"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "null"},
    ):
        assert victim.stranger.ask("PATCH", path, None, {**cookie, **foreign}).status == 403, foreign
    # an image of a page of another port: not every browser says where it belongs to
    assert victim.stranger.ask("GET", f"{path}/yarn-cancel", None, cookie).status == 401
    assert outside.ask("GET", "/overview", None, {**cookie, "Sec-Fetch-Site": "same-site"}).status == 401
