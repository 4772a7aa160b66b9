"""The dashboard in a real browser over the history server: what is archived is shown, or why it is not."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest
from playwright.sync_api import expect

from integration.rest.conftest import Reader, violations
from tests.rest.bench import DESCRIPTION, HOSTS, NEW, OLD, Bench
from tests.rest.history.bench import HistoryBench, archive, ended, job_id, recorder
from yarnflow.core.job.description import EventLog
from yarnflow.core.metrics import MetricScope, ScopeKind
from yarnflow.core.states import JobStatus
from yarnflow.rest.framework.server import WebServer
from yarnflow.rest.history.form import Owner

pytestmark = pytest.mark.may_rerun("a browser draws when it likes")

JOB: Final = f"job/{NEW}"
FLINKS: Final = Owner("jobs", job_id(7))
#: place → what stands there
PAGES: Final = {
    "jobs": "old & <job>",
    JOB: "CANCELED",
    f"{JOB}/vertex/v1": "SCHEDULED",
    f"{JOB}/vertex/v1/metrics": "busyTimeMsPerSecond",
    f"{JOB}/vertex/v1/taskmanagers": "RUNNING",
    f"{JOB}/queries": "KafkaV2[Subscribe[t]]",
    f"{JOB}/timeline": "CREATED",
    f"job/{OLD}/exceptions": "ValueError: <b>",
    f"{JOB}/checkpoints/history": "hdfs://n/sp<",
    f"{JOB}/checkpoints/history/21": "stateStoreSave",
    f"{JOB}/checkpoints/configuration": "exactly once",
    f"{JOB}/metrics": "numRestarts",
    f"{JOB}/configuration": "hdfs://n/logs/eventlog_v2_app-1",
}
#: pages of a cluster that is gone, and of what an archive does not have
ABSENT: Final = {
    "taskmanagers": "This is a history server",
    "jobmanager": "history server",
    f"job/{job_id(99)}": "no archive of it is here",
    f"job/{FLINKS.id}/exceptions": "does not have",
}


@pytest.fixture(scope="module")
def history_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A history server with two jobs of ours, and one of which little was archived."""
    cluster = Bench()
    log = EventLog("hdfs://n/logs", True, "http://spark:18080", ("app-1",))
    cluster.view.descriptions[NEW] = replace(DESCRIPTION, event_log=log)
    cluster.metrics.values[MetricScope(ScopeKind.JOB, job_id=NEW)] = {"numRestarts": 3}
    cluster.view.change(NEW, JobStatus.CANCELED)
    bench = HistoryBench(tmp_path_factory.mktemp("copies"))
    for each in (OLD, NEW):
        bench.put(Owner("jobs", each), recorder(cluster).job(each))
    bench.put(FLINKS, archive(FLINKS, {FLINKS.root: ended(FLINKS.id)}))
    bench.fetcher.refresh()
    server = WebServer(socket.create_server(("127.0.0.1", 0)), bench.app, HOSTS)
    server.start()
    yield f"http://127.0.0.1:{server.port}/"
    server.stop()


@pytest.mark.parametrize("place", PAGES)
def test_page_shows_what_was_archived(place: str, history_url: str, desk: Reader) -> None:
    page = desk.go(history_url, place)
    expect(page.locator("main")).to_contain_text(PAGES[place])
    expect(page.locator("main [role=alert]")).to_have_count(0)
    assert violations(page) == []


@pytest.mark.parametrize("place", ABSENT)
def test_page_without_data_says_why(place: str, history_url: str, desk: Reader) -> None:
    page = desk.go(history_url, place)
    expect(page.locator("main")).to_contain_text(ABSENT[place])
    assert violations(page) == []


def test_nothing_is_offered_that_would_change_something(history_url: str, reader: Reader) -> None:
    page = reader.open(history_url, JOB)
    expect(page.locator("h1")).to_have_text("flights")
    expect(page.get_by_role("button", name="Cancel…")).to_have_count(0)
    expect(page.get_by_role("navigation", name="Main").get_by_role("link")).to_have_text(["Jobs"])
    expect(page.locator("#top .brand")).to_contain_text("history")


def test_sparks_history_server_is_linked(history_url: str, reader: Reader) -> None:
    page = reader.open(history_url, f"{JOB}/configuration")
    link = page.get_by_role("link", name="app-1")
    expect(link).to_have_attribute("href", "http://spark:18080/history/app-1/")
