"""The pages of the dashboard in a real browser, over a cluster that is not there.

What a real cluster answers is compared with Flink's answers elsewhere; here stand-ins of both are shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Browser, expect

from integration.conftest import wait_until
from integration.rest.conftest import Reader, violations
from integration.rest.fixture_server import DASHBOARD, FixtureServer, RecordedAnswers
from integration.rest.sample_cluster import SampleCluster
from integration.rest.sample_values import (
    CANCELED,
    CREATED,
    FAILED,
    FINISHED,
    RESTARTING,
    RUNNING,
    vertex_id,
)

pytestmark = pytest.mark.may_rerun("a browser draws when it likes")

JOB: Final = f"job/{RUNNING}"
VERTEX: Final = f"{JOB}/vertex/{vertex_id(3)}"
#: place → what stands there of a cluster with jobs
PAGES: Final = {
    "overview": "delays-per-airport",
    "jobs": "backfill-2025",
    JOB: "Source: airports",
    f"job/{RESTARTING}": "clicks",
    f"job/{CREATED}": "4 slots; 2 of 6 are free",
    f"job/{FINISHED}": "Ended",
    VERTEX: "worker-2:41001",
    f"{VERTEX}/metrics": "numRecordsInPerSecond",
    f"{VERTEX}/backpressure": "44 %",
    f"{VERTEX}/watermarks": "42 s",
    f"{VERTEX}/taskmanagers": "worker-2:41001",
    f"{VERTEX}/accumulators": "IntCounter",
    f"{JOB}/queries": "KafkaV2[Subscribe[flights]]",
    f"{JOB}/timeline": "RESTARTING",
    f"{JOB}/exceptions": "flights.py",
    f"{JOB}/checkpoints": "savepoint-a1a1a1-0f",
    f"{JOB}/checkpoints/history": "chk-60",
    f"{JOB}/checkpoints/history/56": "Checkpoint 56",
    f"{JOB}/checkpoints/summary": "99.9 %",
    f"{JOB}/checkpoints/configuration": "exactly once",
    f"{JOB}/metrics": "lastCheckpointDuration",
    f"{JOB}/configuration": "exponential-delay",
    "taskmanagers": "tm-2",
    "taskmanager/tm-1": "TaskManager itself",
    "taskmanager/tm-1/metrics": "Status.JVM.CPU.Load",
    "taskmanager/tm-1/logs": "jobmanager.log",
    "taskmanager/tm-1/logs/jobmanager.log": "a heartbeat is late",
    "taskmanager/tm-1/stdout": "batch 12",
    "taskmanager/tm-1/threads": "MainThread",
    "jobmanager": "execution.checkpointing.interval",
    "jobmanager/leadership": "node-2:6123",
    "jobmanager/environment": "OpenJDK 17.0.15",
    "jobmanager/metrics": "Status.Python.Memory.Resident",
    "jobmanager/logs": "jobmanager.log",
    "jobmanager/threads": "mailbox",
    "submit": "Upload a program",
}
#: what an empty cluster says instead
EMPTY: Final = {
    "overview": "No job is running, and no TaskManager is registered.",
    "jobs": "No job has ended yet.",
    "taskmanagers": "No TaskManager is registered.",
    "jobmanager/leadership": "There is no standby",
    "submit": "Nothing is uploaded.",
    JOB: "not found",
    "taskmanager/tm-1": "No TaskExecutor registered under tm-1.",
    "nothing": "There is no such page.",
}
FLINK_JOB: Final = "job/bd0cb8ed98d4bed1c84da48665042886"
FLINK_VERTEX: Final = f"{FLINK_JOB}/vertex/f6dc7f4d2283f4605b127b9364e21148"
#: what stands on the pages over answers that Flink gave
FLINK: Final = {
    "overview": "clicks-per-window",
    FLINK_JOB: "GlobalWindowAggregate[6]",
    FLINK_VERTEX: "localhost:39339",
    f"{FLINK_VERTEX}/metrics": "No metric is chosen.",
    f"{FLINK_VERTEX}/backpressure": "ok",
    f"{FLINK_VERTEX}/watermarks": "2026-",
    f"{FLINK_VERTEX}/taskmanagers": "localhost:39339",
    f"{FLINK_VERTEX}/accumulators": "The program has none.",
    f"{FLINK_JOB}/queries": "No query has reported progress.",
    f"{FLINK_JOB}/timeline": "INITIALIZING",
    f"{FLINK_JOB}/exceptions": "Nothing has failed.",
    f"{FLINK_JOB}/checkpoints": "No checkpoint is complete yet.",
    f"{FLINK_JOB}/checkpoints/configuration": "no periodic checkpoints",
    f"{FLINK_JOB}/configuration": "Cluster level default restart strategy",
    "taskmanagers": "localhost:37467-ea668e",
    "taskmanager/localhost%3A37467-ea668e": "1.37 GiB",
    "taskmanager/localhost%3A37467-ea668e/logs": "flink--taskexecutor-0-vm.log",
    "taskmanager/localhost%3A37467-ea668e/threads": "Reference Handler",
    "jobmanager": "parallelism.default",
    "jobmanager/environment": "OpenJDK 64-Bit Server VM",
    "submit": "Nothing is uploaded.",
}


@pytest.fixture(scope="module")
def empty_server() -> Iterator[FixtureServer]:
    server = FixtureServer(SampleCluster(empty=True))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def flink_server() -> Iterator[FixtureServer]:
    server = FixtureServer(RecordedAnswers())
    yield server
    server.stop()


@pytest.mark.gate
@pytest.mark.parametrize("place", PAGES)
def test_page_shows_its_data_to_everybody(place: str, steady_server: FixtureServer, desk: Reader) -> None:
    page = desk.go(steady_server.url, place)
    expect(page.locator("main")).to_contain_text(PAGES[place])
    expect(page.locator("main h1")).to_have_count(1)
    assert violations(page) == []
    # text of jobs is text: none of it became an element
    assert page.locator("img[src=x]").count() == 0
    assert page.title() != "taken over"


@pytest.mark.parametrize("place", PAGES)
def test_page_fits_a_phone_and_is_readable_in_the_dark(
    place: str, steady_server: FixtureServer, phone: Reader
) -> None:
    page = phone.go(steady_server.url, place)
    expect(page.locator("main")).to_contain_text(PAGES[place])
    # wide tables and graphs move in their own frames, never the page
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert violations(page) == []
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).every(c => c < 60)")
    assert dark, "the page is not dark"


@pytest.mark.parametrize("place", EMPTY)
def test_empty_cluster_says_what_there_is_not(place: str, empty_server: FixtureServer, desk: Reader) -> None:
    page = desk.go(empty_server.url, place)
    expect(page.locator("main")).to_contain_text(EMPTY[place])
    assert violations(page) == []


@pytest.mark.parametrize("place", FLINK)
def test_answers_of_flink_are_shown(place: str, flink_server: FixtureServer, desk: Reader) -> None:
    page = desk.go(flink_server.url, place)
    expect(page.locator("main")).to_contain_text(FLINK[place])
    expect(page.locator("main [role=alert], main .alert")).to_have_count(0)


@pytest.mark.parametrize("place", ["overview", JOB, "taskmanagers", "jobmanager", "submit"])
def test_failing_server_is_told_with_its_words(place: str, server: FixtureServer, reader: Reader) -> None:
    server.faults.status = 500
    page = reader.open(server.url, place)
    expect(page.locator("main [role=alert], main .alert").first).to_contain_text(
        "The JobManager has a fault."
    )
    assert violations(page) == []
    server.faults.status = 0
    expect(page.locator("main")).to_contain_text(PAGES[place])


def test_failure_keeps_what_was_shown(server: FixtureServer, reader: Reader) -> None:
    page = reader.open(server.url, "jobs")
    expect(page.locator("main")).to_contain_text("delays-per-airport")
    server.faults.status = 500
    expect(page.locator("main [role=alert]")).to_contain_text("The JobManager has a fault.")
    expect(page.locator("main")).to_contain_text("delays-per-airport")


@pytest.mark.gate
def test_goes_on_by_itself_after_the_connection_was_lost(server: FixtureServer, reader: Reader) -> None:
    page = reader.open(server.url, JOB)
    expect(page.locator("main")).to_contain_text("Source: airports")
    server.stop()
    expect(page.locator("#connection")).to_contain_text("No connection since")
    expect(page.locator("main")).to_contain_text("Source: airports")
    assert violations(page) == []
    # as after a failover: the leader that answers next has other news
    cluster = server.cluster
    assert isinstance(cluster, SampleCluster)
    cluster.states[RUNNING] = "RECONCILING"
    server.start()
    expect(page.locator("h1 + .badge")).to_have_text("RECONCILING")
    expect(page.locator("#connection")).to_be_empty()
    wait_until(lambda: server.listeners, "the page to listen again")


def test_answer_that_breaks_off_is_a_lost_connection(server: FixtureServer, reader: Reader) -> None:
    page = reader.open(server.url, "jobs")
    server.faults.breaks_off = True
    expect(page.locator("#connection")).to_contain_text("No connection since")
    expect(page.locator("main")).to_contain_text("delays-per-airport")
    expect(page.locator("main [role=alert]")).to_have_count(0)
    server.faults.breaks_off = False
    expect(page.locator("#connection")).to_be_empty()


def test_part_that_cannot_be_loaded_is_loaded_later(server: FixtureServer, reader: Reader) -> None:
    page = reader.open(server.url, JOB)
    page.route("**/job/exceptions.js", lambda route: route.abort())
    page.get_by_role("link", name="Exceptions").click()
    expect(page.locator("#connection")).to_contain_text("A part of the dashboard cannot be loaded.")
    page.unroute("**/job/exceptions.js")
    expect(page.locator("#connection")).to_be_empty()
    expect(page.locator("main .tabs [aria-current]")).to_have_text("Exceptions")
    assert reader.complaints and all("exceptions.js" in each for each in reader.complaints)
    reader.complaints.clear()


@pytest.mark.parametrize("status", [502, 503, 504])
def test_leaderless_time_is_no_error(status: int, server: FixtureServer, reader: Reader) -> None:
    page = reader.open(server.url, "overview")
    server.faults.status = status
    expect(page.locator("#connection")).to_contain_text("No connection since")
    expect(page.locator("main [role=alert]")).to_have_count(0)
    server.faults.status = 0
    expect(page.locator("#connection")).to_be_empty()


@pytest.mark.parametrize("status", [502, 504])
def test_silent_task_manager_is_no_lost_job_manager(
    status: int, server: FixtureServer, reader: Reader
) -> None:
    server.faults.task_managers = status
    page = reader.open(server.url, "taskmanager/tm-1/logs")
    expect(page.locator("main .alert")).to_contain_text("The TaskManager does not answer.")
    expect(page.locator("#connection")).to_be_empty()


def test_page_begun_without_a_server_goes_on_when_there_is_one(server: FixtureServer, reader: Reader) -> None:
    server.faults.status = 503
    page = reader.open(server.url, "overview")
    expect(page.locator("main")).to_contain_text("Waiting for the JobManager")
    server.faults.status = 0
    expect(page.locator("main")).to_contain_text("delays-per-airport")
    expect(page.get_by_role("link", name="Submit")).to_be_visible()


def test_event_is_shown_at_once(server: FixtureServer, reader: Reader) -> None:
    cluster = server.cluster
    assert isinstance(cluster, SampleCluster)
    page = reader.open(server.url, f"{JOB}/exceptions")
    wait_until(lambda: server.listeners, "the page to listen")
    server.tell("checkpoint", {})
    asked = f"/jobs/{RUNNING}/exceptions?maxExceptions=50"
    before = server.reads.count(asked)
    cluster.states[RUNNING] = "FAILING"
    server.tell("state", {"state": "FAILING"})
    expect(page.locator("h1 + .badge")).to_have_text("FAILING")
    expect(page.locator("#announcer")).to_have_text("Job delays-per-airport is FAILING.")
    assert server.reads.count(asked) > before


def test_ended_job_is_not_listened_to(server: FixtureServer, reader: Reader) -> None:
    cluster = server.cluster
    assert isinstance(cluster, SampleCluster)
    page = reader.open(server.url, JOB)
    wait_until(lambda: server.listeners, "the page to listen")
    cluster.states[RUNNING] = "FINISHED"
    server.tell("state", {"state": "FINISHED"})
    expect(page.locator("h1 + .badge")).to_have_text("FINISHED")
    wait_until(lambda: not server.listeners, "the page to stop listening")
    expect(page.get_by_role("button", name="Cancel…")).to_have_count(0)


def test_without_events_the_page_asks(server: FixtureServer, reader: Reader) -> None:
    server.faults.no_events = True
    cluster = server.cluster
    assert isinstance(cluster, SampleCluster)
    page = reader.open(server.url, JOB)
    expect(page.locator("h1 + .badge")).to_have_text("RUNNING")
    cluster.states[RUNNING] = "RESTARTING"
    expect(page.locator("h1 + .badge")).to_have_text("RESTARTING")


def test_failed_and_canceled_jobs_say_so(server: FixtureServer, reader: Reader) -> None:
    page = reader.open(server.url, f"job/{FAILED}/exceptions")
    expect(page.locator("li.card").first).to_contain_text("the job ended")
    traceback = page.get_by_role("region", name="Python traceback")
    expect(traceback).to_have_text(
        re.compile(r"^Traceback .*flights\.py.*ValueError: [^\t]*'NA'$", re.DOTALL)
    )
    expect(page.get_by_text("at org.apache.spark").first).to_be_hidden()
    expect(reader.open(server.url, f"job/{CANCELED}").locator("h1 + .badge")).to_have_text("CANCELED")


def test_first_paint_is_small(server: FixtureServer, reader: Reader) -> None:
    sizes: dict[str, int] = {}
    reader.page.on(
        "response", lambda response: sizes.__setitem__(response.url, int(response.headers["content-length"]))
    )
    reader.open(server.url, "overview")
    files = {url: size for url, size in sizes.items() if "/dashboard/" in url or url.endswith("/")}
    print(json.dumps({"files": len(files), "bytes": sum(files.values())}))
    assert len(files) > 10 and sum(files.values()) < 120_000
    whole = sum(path.stat().st_size for path in DASHBOARD.rglob("*") if path.is_file())
    print(json.dumps({"all pages": whole}))


def test_unheard_of_browser_settings_do_no_harm(server: FixtureServer, browser: Browser) -> None:
    """Without a store for choices, as browsers have it that keep nothing."""
    context = browser.new_context()
    context.add_init_script(
        "for (const name of ['localStorage', 'sessionStorage']) "
        "Object.defineProperty(window, name, {get() { throw new DOMException('no', 'SecurityError'); }})"
    )
    page = context.new_page()
    page.goto(f"{server.url}#/{JOB}")
    expect(page.locator("main")).to_contain_text("Source: airports")
    context.close()
