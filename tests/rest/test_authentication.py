"""Who may read and who may write."""

from __future__ import annotations

import pytest

from tests.rest.asgi import ask
from tests.rest.bench import NEW, Bench
from yarnflow.rest.access.tokens import Access, token

SECRET = b"0123456789abcdef0123456789abcdef"
READ, WRITE = token(SECRET, Access.READ), token(SECRET, Access.WRITE)
PROXY = "a1" * 32


@pytest.fixture
def bench() -> Bench:
    return Bench(SECRET, PROXY)


def test_tokens_follow_from_the_secret_and_differ() -> None:
    assert READ != WRITE and len(READ) == 64
    assert token(SECRET, Access.READ) == READ
    assert token(b"another", Access.READ) != READ


@pytest.mark.parametrize(
    "headers, read, write",
    [
        ({}, 401, 401),
        ({"authorization": f"Bearer {WRITE}"}, 200, 202),
        ({"authorization": f"bearer {WRITE}"}, 200, 202),
        ({"authorization": f"Bearer {READ}"}, 200, 403),
        ({"x-yarnflow-token": WRITE}, 200, 202),
        ({"x-yarnflow-token": READ}, 200, 403),
        ({"authorization": f"Bearer {WRITE[:-1]}"}, 401, 401),
        ({"authorization": f"Bearer {WRITE}0"}, 401, 401),
        ({"authorization": "Bearer ü€"}, 401, 401),
        ({"authorization": f"Basic {WRITE}"}, 401, 401),
        ({"cookie": f"token={WRITE}; Authorization={WRITE}"}, 401, 401),
    ],
)
def test_tokens(bench: Bench, headers: dict[str, str], read: int, write: int) -> None:
    sent = {name: value.encode().decode("latin-1") for name, value in headers.items()}
    assert ask(bench.app, "GET", "/overview", headers=sent).status == read
    answer = ask(bench.app, "PATCH", f"/jobs/{NEW}", headers=sent)
    assert answer.status == write
    assert bench.view.canceled == ([NEW] if write == 202 else [])
    if write == 401:
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_without_authentication_everybody_may(bench: Bench) -> None:
    assert ask(Bench().app, "PATCH", f"/jobs/{NEW}").status == 202


@pytest.mark.parametrize("path", ["/", "/dashboard/app.js", "/dashboard/core/api.js"])
def test_the_dashboard_itself_needs_no_token(bench: Bench, path: str) -> None:
    """A browser that is sent there has none yet; the files say nothing of the cluster."""
    assert ask(bench.app, "GET", path).status == 200


def test_yarns_proxy_may_read_and_no_more(bench: Bench) -> None:
    for path in ("overview", "v1/overview", "/overview"):
        assert ask(bench.app, "GET", f"/{PROXY}/{path}").status == 200
    assert ask(bench.app, "GET", f"/{PROXY}").status == ask(bench.app, "GET", f"/{PROXY}/").status == 200
    assert ask(bench.app, "GET", f"/{PROXY[:-1]}/overview").status == 404
    assert ask(bench.app, "GET", f"/jobs/{PROXY}/overview").status == 404
    assert ask(bench.app, "GET", f"/{PROXY}/jobs/{NEW}/yarn-cancel").status == 401
    assert not bench.view.canceled


@pytest.mark.parametrize(
    "method, query, body, status",
    [
        ("GET", f"?token={WRITE}", b"", 202),
        ("GET", f"?token={READ}", b"", 403),
        ("GET", "?token=x", b"", 401),
        ("PUT", "", {"token": WRITE}, 202),
        ("PUT", "", {"token": READ}, 403),
        ("PUT", "", {"token": 3}, 401),
        ("PUT", "", b"[" * 5000, 401),
        ("PUT", "", {}, 401),
    ],
)
def test_a_token_passes_yarns_proxy_without_headers(
    bench: Bench, method: str, query: str, body: bytes | dict[str, str], status: int
) -> None:
    for what in ("yarn-cancel", "yarn-stop"):
        answer = ask(bench.app, method, f"/{PROXY}/jobs/{NEW}/{what}{query}", body)
        assert answer.status == status, what
    assert len(bench.view.canceled) == len(bench.view.requests) == (status == 202)


def test_a_stop_through_yarns_proxy_says_where_and_by_whose_request(bench: Bench) -> None:
    body = {"token": WRITE, "targetDirectory": "/sp", "triggerId": "a" * 32}
    assert ask(bench.app, "PUT", f"/{PROXY}/jobs/{NEW}/yarn-stop", body).status == 202
    request = bench.view.requests["a" * 32]
    assert (request.target_dir, request.request_id) == ("/sp", "a" * 32)


def test_a_token_in_a_query_counts_nowhere_else(bench: Bench) -> None:
    assert ask(bench.app, "PATCH", f"/jobs/{NEW}?token={WRITE}").status == 401
    assert ask(bench.app, "GET", f"/overview?token={WRITE}").status == 401


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"origin": "http://jm:8081"}, 202),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://["}, 403),
        ({"origin": "://"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 202),
        ({"sec-fetch-site": "none"}, 202),
    ],
)
def test_pages_of_other_sites_change_nothing(headers: dict[str, str], status: int) -> None:
    """Also where nobody needs a token: any page a user looks at could ask his browser for it."""
    bench = Bench()
    assert ask(bench.app, "PATCH", f"/jobs/{NEW}", headers=headers).status == status
    assert ask(bench.app, "GET", f"/jobs/{NEW}/yarn-cancel", headers=headers).status == status
    assert ask(bench.app, "GET", "/overview", headers=headers).status == 200
    assert len(bench.view.canceled) == 2 * (status == 202)


@pytest.mark.parametrize("secret, sent", [(SECRET, {"token": WRITE}), (b"", {})])
def test_yarns_proxy_passes_on_the_origin_of_its_own_pages(secret: bytes, sent: dict[str, str]) -> None:
    bench = Bench(secret, PROXY)
    origin = {"origin": "http://rm:8088"}
    for path, status in ((f"/{PROXY}", 202), ("", 403)):
        for what in ("yarn-cancel", "yarn-stop"):
            answer = ask(bench.app, "PUT", f"{path}/jobs/{NEW}/{what}", sent, origin)
            assert answer.status == status, (path, what)
    # what a page of another site could have a browser send without asking first
    assert ask(bench.app, "GET", f"/{PROXY}/jobs/{NEW}/yarn-cancel", headers=origin).status == 403


# --- from the machine itself, for one release ---


def test_who_asks_from_this_machine_may_read_and_is_warned(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(SECRET, loopback_reads=True)
    for client in ("127.0.0.1", "127.3.2.1", "::1"):
        answer = ask(bench.app, "GET", "/overview", client=client)
        assert answer.status == 200 and answer.headers["warning"].startswith('299 yarnflow "')
        assert ask(bench.app, "PATCH", f"/jobs/{NEW}", client=client).status == 401
    assert sum("answered without a token" in message for message in caplog.messages) == 1
    assert not bench.view.canceled


def test_what_needs_no_warning_has_none() -> None:
    bench = Bench(SECRET, loopback_reads=True)
    with_token = ask(bench.app, "GET", "/overview", headers={"x-yarnflow-token": READ}, client="127.0.0.1")
    page = ask(bench.app, "GET", "/", client="127.0.0.1")
    assert (with_token.status, page.status) == (200, 200)
    assert "warning" not in with_token.headers and "warning" not in page.headers


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer "},
        {"authorization": "Basic YTpi"},
        {"x-yarnflow-token": ""},
        {"x-yarnflow-token": "wrong"},
        {"forwarded": "for=10.0.0.1"},
        {"x-forwarded-for": "127.0.0.1"},
        {"x-real-ip": "127.0.0.1"},
        {"via": "1.1 gateway"},
        {"x-yarnflow-forwarded": "1"},
        {"host": "gateway.example"},
    ],
)
def test_a_wrong_token_and_a_gateway_are_not_this_machine(headers: dict[str, str]) -> None:
    bench = Bench(SECRET, loopback_reads=True)
    assert ask(bench.app, "GET", "/overview", headers=headers, client="127.0.0.1").status == 401


def test_others_and_clusters_on_yarn_have_no_exception(bench: Bench) -> None:
    assert ask(Bench(SECRET, loopback_reads=True).app, "GET", "/overview", client="10.0.0.9").status == 401
    assert ask(bench.app, "GET", "/overview", client="127.0.0.1").status == 401


def test_who_may_not_ask_hears_nothing_of_what_there_is(bench: Bench) -> None:
    for target in (f"/jobs/{NEW}", "/jobs/zz", f"/jobs/{'c' * 32}"):
        assert ask(bench.app, "GET", target).status == 401
