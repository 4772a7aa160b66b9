"""Browsers: a code becomes a cookie, and what that lets them do."""

from __future__ import annotations

from http.cookies import SimpleCookie

import pytest

from tests.rest.asgi import Answer, ask
from tests.rest.bench import NEW, Bench
from yarnflow.core.messages import RestAccess
from yarnflow.rest.access.links import dashboard_link
from yarnflow.rest.access.tickets import Purpose, issue, verified
from yarnflow.rest.access.tokens import Access, token

SECRET = b"0123456789abcdef0123456789abcdef"
OWN = {"origin": "http://jm:8081"}


def token_of(access: Access) -> str:
    return token(SECRET, access)


def code(bench: Bench, access: Access = Access.WRITE) -> str:
    return issue(token_of(access), access, Purpose.CODE, bench.now_s())


def use(bench: Bench, text: str, query: str = "") -> Answer:
    return ask(bench.app, "GET", f"/?code={text}{query}")


def cookie(bench: Bench, access: Access = Access.WRITE) -> dict[str, str]:
    """Headers of a browser that was let in."""
    (made,) = SimpleCookie(use(bench, code(bench, access)).headers["set-cookie"]).values()
    return {"cookie": f"theme=dark; {made.key}={made.value}"}


@pytest.fixture
def bench() -> Bench:
    return Bench(SECRET)


@pytest.mark.parametrize("purpose", Purpose)
@pytest.mark.parametrize("access", Access)
def test_tickets(purpose: Purpose, access: Access) -> None:
    made = issue(token_of(access), access, purpose, 1_000_000.5)
    found = verified(made, purpose, token_of, 1_000_000)
    assert found is not None and found.access is access
    assert verified(made, purpose, token_of, 1_000_000 + purpose.value) is None
    # a clock that goes back by a day
    assert verified(made, purpose, token_of, 1_000_000 - 86_400) is None
    other = next(each for each in Purpose if each is not purpose)
    assert verified(made, other, token_of, 1_000_000) is None
    stronger = made.replace("read", "write") if access is Access.READ else made.replace("write", "read")
    assert verified(stronger, purpose, token_of, 1_000_000) is None
    assert issue(token_of(access), access, purpose, 1_000_000.5) != made


@pytest.mark.parametrize(
    "text", ["", "x", "write-0-0-0", "read-ffffffff-0123456789abcdef-" + "A" * 22, "é" * 60]
)
def test_what_is_not_a_ticket(text: str) -> None:
    assert verified(text, Purpose.CODE, token_of, 1_000_000) is None


def test_a_code_becomes_a_cookie_once(bench: Bench) -> None:
    made = code(bench)
    answer = use(bench, made, "&x=1")
    assert (answer.status, answer.headers["location"], answer.body) == (303, "./?x=1", b"")
    given = answer.headers["set-cookie"]
    for part in ("yarnflow-session-8081=", "HttpOnly", "SameSite=strict", "Path=/", "Max-Age="):
        assert part in given
    assert token_of(Access.WRITE) not in given and made not in given
    again = use(bench, made)
    assert again.status == 403 and "yarnflow dashboard" in again.error and "set-cookie" not in again.headers
    assert use(bench, code(bench)).headers["location"] == "./"


def test_codes_that_do_not_count(bench: Bench) -> None:
    made = code(bench)
    session = issue(token_of(Access.WRITE), Access.WRITE, Purpose.SESSION, bench.now_s())
    foreign = issue("another cluster's", Access.WRITE, Purpose.CODE, bench.now_s())
    for text in ("", made[:-1] + ("A" if made[-1] != "A" else "B"), session, foreign):
        assert use(bench, text).status == 403
    bench.passed_s = Purpose.CODE.value
    assert use(bench, made).status == 403


def test_a_code_counts_on_the_first_page_alone(bench: Bench) -> None:
    made = code(bench)
    assert ask(bench.app, "GET", f"/overview?code={made}").status == 401
    assert ask(bench.app, "HEAD", f"/?code={made}").status == 200
    assert use(bench, made).status == 303


def test_where_nobody_needs_a_token_a_code_is_passed_over() -> None:
    answer = ask(Bench().app, "GET", "/?code=x")
    assert answer.status == 303 and "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "access, headers, read, write",
    [
        (Access.WRITE, OWN, 200, 202),
        (Access.WRITE, {**OWN, "sec-fetch-site": "same-origin"}, 200, 202),
        # no browser leaves it out of what changes something
        (Access.WRITE, {}, 200, 401),
        (Access.WRITE, {"origin": "http://jm:9999"}, 200, 403),
        (Access.WRITE, {"origin": "http://evil.example"}, 200, 403),
        (Access.WRITE, {"sec-fetch-site": "same-site"}, 401, 403),
        (Access.WRITE, {"sec-fetch-site": "cross-site"}, 401, 403),
        (Access.READ, OWN, 200, 401),
        # a token that does not count is not passed over
        (Access.WRITE, {**OWN, "authorization": "Bearer x"}, 401, 401),
    ],
)
def test_what_a_cookie_lets_do(
    bench: Bench, access: Access, headers: dict[str, str], read: int, write: int
) -> None:
    sent = {**cookie(bench, access), **headers}
    assert ask(bench.app, "GET", "/overview", headers=sent).status == read
    assert ask(bench.app, "PATCH", f"/jobs/{NEW}", headers=sent).status == write
    assert bench.view.canceled == ([NEW] if write == 202 else [])


def test_an_image_of_a_page_of_another_port_changes_nothing(bench: Bench) -> None:
    """Where the host is not trusted a browser says nothing of the page, and sends the cookie."""
    assert ask(bench.app, "GET", f"/jobs/{NEW}/yarn-cancel", headers=cookie(bench)).status == 401
    assert not bench.view.canceled


def test_a_cookie_outlives_a_master_and_ends(bench: Bench) -> None:
    sent = cookie(bench)
    next_leader = Bench(SECRET)
    assert ask(next_leader.app, "GET", "/overview", headers=sent).status == 200
    assert ask(Bench(b"another").app, "GET", "/overview", headers=sent).status == 401
    next_leader.passed_s = Purpose.SESSION.value
    assert ask(next_leader.app, "GET", "/overview", headers=sent).status == 401


def test_links() -> None:
    access = RestAccess("http://jm:8081", token_of(Access.READ), token_of(Access.WRITE))
    link = dashboard_link(access, "job/1")
    assert link.startswith("http://jm:8081/?code=write-") and link.endswith("#/job/1")
    assert "/?code=read-" in dashboard_link(access, read_only=True)
    assert dashboard_link(RestAccess("http://jm:8081"), "job/1") == "http://jm:8081/#/job/1"
    assert dashboard_link(RestAccess("http://jm:8081")) == "http://jm:8081"
