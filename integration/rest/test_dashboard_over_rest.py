"""The dashboard in a real browser, over the REST interface of a JobManager whose cluster is made of values.

What the dashboard reads is what the interface answers: a key that one of them renames fails here.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest
from playwright.sync_api import expect

from integration.conftest import wait_until
from integration.rest.conftest import Reader, violations
from tests.rest.bench import HOSTS, NEW, OLD, Bench
from yarnflow.core.states import JobStatus
from yarnflow.rest.access.tokens import Access, token
from yarnflow.rest.framework.server import WebServer

pytestmark = pytest.mark.may_rerun("a browser draws when it likes")

SECRET: Final = b"0123456789abcdef0123456789abcdef"
JOB: Final = f"job/{NEW}"
TASK_MANAGER: Final = "taskmanager/h%3Acontainer_1"
#: place → what stands there
PAGES: Final = {
    "overview": "flights",
    "jobs": "old & <job>",
    JOB: "slots: 1 of 2",
    f"{JOB}/vertex/v1": "SCHEDULED",
    f"{JOB}/vertex/v1/metrics": "busyTimeMsPerSecond",
    f"{JOB}/vertex/v1/backpressure": "60 %",
    f"{JOB}/vertex/v1/watermarks": "1970-01-01",
    f"{JOB}/vertex/v1/taskmanagers": "RUNNING",
    f"{JOB}/vertex/v1/accumulators": "The program has none.",
    f"{JOB}/queries": "KafkaV2[Subscribe[t]]",
    f"{JOB}/timeline": "CREATED",
    f"{JOB}/exceptions": "Nothing has failed.",
    f"job/{OLD}/exceptions": "ValueError: <b>",
    f"{JOB}/checkpoints": "hdfs://n/old",
    f"{JOB}/checkpoints/history": "hdfs://n/sp<",
    f"{JOB}/checkpoints/history/21": "stateStoreSave",
    f"{JOB}/checkpoints/summary": "99.9 %",
    f"{JOB}/checkpoints/configuration": "exactly once",
    f"{JOB}/configuration": "exponential-delay",
    "taskmanagers": "h:container_1",
    TASK_MANAGER: "1.69 GiB",
    f"{TASK_MANAGER}/logs": "taskmanager.log",
    f"{TASK_MANAGER}/logs/taskmanager.log": "0123456789",
    f"{TASK_MANAGER}/stdout": "printed",
    "jobmanager": "a.b",
    "jobmanager/leadership": "g:6123",
    "jobmanager/environment": "CPython",
    "jobmanager/logs/jobmanager.log": "jobmanager's",
}


@contextmanager
def serving(bench: Bench) -> Iterator[str]:
    """The address of a bench's interface."""
    server = WebServer(socket.create_server(("127.0.0.1", 0)), bench.app, HOSTS)
    server.start()
    yield f"http://127.0.0.1:{server.port}/"
    server.stop()
    bench.pool.close()


@pytest.fixture(scope="module")
def steady_url() -> Iterator[str]:
    with serving(Bench()) as url:
        yield url


@pytest.mark.parametrize("place", PAGES)
def test_page_shows_what_the_interface_answers(place: str, steady_url: str, desk: Reader) -> None:
    page = desk.go(steady_url, place)
    expect(page.locator("main")).to_contain_text(PAGES[place])
    expect(page.locator("main [role=alert]")).to_have_count(0)
    assert violations(page) == []


def test_graph_has_the_edge_of_the_plan(steady_url: str, desk: Reader) -> None:
    page = desk.go(steady_url, JOB)
    expect(page.locator(".graph a.vertex")).to_have_count(2)
    expect(page.locator(".graph path.edge")).to_have_count(1)
    expect(page.locator(".graph text")).to_have_text("HASH")


def test_job_is_canceled_and_its_end_is_told(reader: Reader) -> None:
    bench = Bench()
    with serving(bench) as url:
        page = reader.open(url, f"{JOB}/exceptions")
        page.get_by_role("button", name="Cancel…").click()
        page.get_by_role("button", name="Cancel job").click()
        expect(page.locator("#notices")).to_contain_text("flights is being canceled.")
        assert bench.view.canceled == [NEW]
        bench.view.change(NEW, JobStatus.CANCELED)
        bench.changes.changed(NEW)
        expect(page.locator("h1 + .badge")).to_have_text("CANCELED")


def test_savepoint_is_followed_to_its_end(reader: Reader) -> None:
    bench = Bench()
    with serving(bench) as url:
        page = reader.open(url, JOB)
        page.get_by_role("button", name="Savepoint…").click()
        page.get_by_label("Directory").fill("hdfs://n/mine")
        page.get_by_role("button", name="Take savepoint").click()
        (request,) = wait_until(lambda: list(bench.view.requests), "the savepoint to be begun")
        assert bench.view.requests[request].target_dir == "hdfs://n/mine"
        bench.view.complete(request, "hdfs://n/mine/savepoint-1")
        expect(page.locator("#notices")).to_contain_text("Savepoint of flights: hdfs://n/mine/savepoint-1")


def test_token_that_may_only_read_is_not_enough_to_write(reader: Reader) -> None:
    bench = Bench(SECRET)
    with serving(bench) as url:
        page = reader.open(url, JOB)
        page.get_by_role("textbox", name="Token").fill(token(SECRET, Access.READ))
        page.get_by_role("button", name="Use token").click()
        expect(page.locator("h1")).to_have_text("flights")
        page.get_by_role("button", name="Cancel…").click()
        page.get_by_role("button", name="Cancel job").click()
        page.get_by_role("textbox", name="Token").fill(token(SECRET, Access.WRITE))
        page.get_by_role("button", name="Use token").click()
        expect(page.locator("#notices")).to_contain_text("flights is being canceled.")
        assert bench.view.canceled == [NEW]
