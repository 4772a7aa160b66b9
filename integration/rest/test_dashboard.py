"""The dashboard in a real browser, over a cluster that is not there.

What a real cluster answers is compared with Flink's answers elsewhere; here stand-ins of both are shown.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, expect

from integration.conftest import wait_until
from integration.rest.conftest import Reader, tab_to, violations
from integration.rest.fixture_server import DASHBOARD, FixtureServer, RecordedAnswers
from integration.rest.sample_cluster import SampleCluster
from integration.rest.sample_values import (
    CANCELED,
    CREATED,
    FAILED,
    FINISHED,
    HOSTILE,
    RESTARTING,
    RUNNING,
    now_ms,
    vertex_id,
)
from tests.patience import PATIENCE

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


def test_job_is_canceled_after_a_question(server: FixtureServer, reader: Reader) -> None:
    page = reader.open(server.url, JOB)
    page.get_by_role("button", name="Cancel…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Cancel delays-per-airport?")
    assert violations(page) == []
    dialog.get_by_role("button", name="Back").click()
    expect(dialog).to_have_count(0)
    assert not server.writes
    page.get_by_role("button", name="Cancel…").click()
    page.get_by_role("button", name="Cancel job").click()
    expect(page.locator("#notices")).to_contain_text("delays-per-airport is being canceled.")
    assert server.writes == [("PATCH", f"/jobs/{RUNNING}?mode=cancel", "")]


@pytest.mark.gate
def test_job_is_stopped_with_a_savepoint(server: FixtureServer, reader: Reader) -> None:
    page = reader.open(server.url, JOB)
    page.get_by_role("button", name="Stop…").click()
    page.get_by_label("Directory").fill("hdfs:///mine")
    page.get_by_label("Drain").check()
    page.get_by_role("button", name="Stop with savepoint").click()
    expect(page.locator("#notices")).to_contain_text("its savepoint: hdfs:///savepoints/savepoint-1")
    assert server.writes == [
        ("POST", f"/jobs/{RUNNING}/stop", {"drain": True, "targetDirectory": "hdfs:///mine"})
    ]
    assert violations(page) == []


def test_savepoint_fails_with_its_reason(server: FixtureServer, reader: Reader) -> None:
    server.faults.savepoint_failure = (
        "x.Outer: failed\n\tat a.b(c)\nCaused by: java.io.IOException: disk is full\n\tat d"
    )
    page = reader.open(server.url, JOB)
    page.get_by_role("button", name="Savepoint…").click()
    page.get_by_role("button", name="Take savepoint").click()
    expect(page.locator("#notices .bad")).to_have_text(
        re.compile("Savepoint of .*: ?… disk is full|… disk is full")
    )
    assert server.writes == [("POST", f"/jobs/{RUNNING}/savepoints", {"cancel-job": False})]


def test_checkpoint_is_triggered_while_the_leader_changes(server: FixtureServer, reader: Reader) -> None:
    page = reader.open(server.url, JOB)
    page.get_by_role("button", name="Checkpoint").click()
    wait_until(lambda: server.writes, "the checkpoint to be triggered")
    server.faults.status = 503
    expect(page.locator("#connection")).to_contain_text("No connection since")
    server.faults.status = 0
    expect(page.locator("#notices")).to_contain_text("Checkpoint 62 of delays-per-airport is complete.")
    assert server.writes == [("POST", f"/jobs/{RUNNING}/checkpoints", {"checkpointType": "CONFIGURED"})]


def test_nothing_is_offered_that_is_switched_off(server: FixtureServer, reader: Reader) -> None:
    cluster = server.cluster
    assert isinstance(cluster, SampleCluster)
    cluster.features |= {"web-cancel": False, "web-submit": False}
    page = reader.open(server.url, JOB)
    expect(page.locator("main")).to_contain_text("Source: airports")
    expect(page.get_by_role("button", name="Cancel…")).to_have_count(0)
    expect(page.get_by_role("link", name="Submit")).to_have_count(0)
    expect(reader.open(server.url, "submit").locator("main")).to_contain_text("yarnflow submit")


@pytest.mark.gate
def test_program_is_uploaded_and_run(server: FixtureServer, reader: Reader, tmp_path: Path) -> None:
    cluster = server.cluster
    assert isinstance(cluster, SampleCluster)
    program = tmp_path / "words.py"
    program.write_text("print('words')\n")
    page = reader.open(server.url, "submit")
    page.get_by_label("Python file").set_input_files(program)
    cluster.jars.append(
        {
            "id": "0f_words.py",
            "name": "words.py",
            "uploaded": now_ms(),
            "entry": [{"name": "words", "description": ""}],
        }
    )
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_label("Arguments")).to_be_visible()
    assert violations(page) == []
    method, path, body = server.writes.pop()
    assert (method, path) == ("POST", "/jars/upload")
    assert 'name="jarfile"; filename="words.py"' in body and "print('words')" in body
    page.get_by_label("Arguments").fill("""--input 'a b' "c" d""")
    page.get_by_label("Parallelism").fill("3")
    page.get_by_role("button", name="Show plan").click()
    expect(page.get_by_role("group", name="Plan of delays-per-airport")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("h1")).to_have_text("delays-per-airport")
    wanted = {
        "allowNonRestoredState": False,
        "programArgsList": ["--input", "a b", "c", "d"],
        "parallelism": 3,
    }
    assert server.writes[-1] == ("POST", "/jars/0f_words.py/run", wanted)


@pytest.mark.gate
def test_token_is_asked_for_once_and_sent_with_everything(server: FixtureServer, reader: Reader) -> None:
    server.faults.token = "s3cret"
    page = reader.open(server.url, "jobs")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("This cluster asks for a token.")
    assert violations(page) == []
    dialog.get_by_role("button", name="Back").click()
    # it is not asked for again with every look
    expect(page.locator("main [role=alert]")).to_contain_text("shows nothing without a token")
    assert violations(page) == []
    page.get_by_role("button", name="Enter a token").click()
    dialog.get_by_label("Token").fill("wrong")
    dialog.get_by_role("button", name="Use token").click()
    expect(dialog).to_be_visible()
    dialog.get_by_label("Token").fill("s3cret")
    dialog.get_by_role("button", name="Use token").click()
    expect(page.locator("main")).to_contain_text("delays-per-airport")
    expect(page.get_by_role("link", name="Submit")).to_be_visible()
    assert page.evaluate("JSON.stringify(localStorage)") == "{}"
    # the job's events need it too
    page.get_by_role("link", name="delays-per-airport").click()
    wait_until(lambda: server.listeners, "the page to listen")
    page.reload()
    expect(page.locator("main")).to_contain_text("Source: airports")


@pytest.mark.gate
def test_everything_is_below_the_path_of_a_proxy(reader: Reader) -> None:
    server = FixtureServer(SampleCluster(), prefix="/proxy/application_1795206794135_0007/")
    try:
        page = reader.open(server.url, JOB)
        expect(page.locator("main")).to_contain_text("Source: airports")
        expect(page.get_by_role("button", name="Savepoint…")).to_be_disabled()
        page.get_by_role("button", name="Cancel…").click()
        page.get_by_role("button", name="Cancel job").click()
        expect(page.locator("#notices")).to_contain_text("is being canceled")
        assert server.writes == [("PUT", f"{server.prefix}jobs/{RUNNING}/yarn-cancel", {"token": ""})]
        expect(reader.open(server.url, "submit").locator("main")).to_contain_text(
            "YARN's proxy passes on no programs"
        )
    finally:
        server.stop()


def test_keyboard_leads_through_a_job(server: FixtureServer, reader: Reader) -> None:
    page = reader.open(server.url, "jobs")
    expect(page.get_by_role("link", name="delays-per-airport")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to content")
    expect(page.locator(":focus")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    tab_to(page, "delays-per-airport")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("delays-per-airport")
    expect(page.locator("main")).to_be_focused()
    tab_to(page, "Source: airports")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "the focus cannot be seen"
    page.keyboard.press("Enter")
    expect(page.locator("#vertex-title")).to_be_focused()
    tab_to(page, "Metrics")
    page.keyboard.press("Enter")
    expect(page.get_by_role("region", name="Source: airports").locator(".plot").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".drawer")).to_have_count(0)
    expect(page.locator("a.vertex:focus")).to_contain_text("Source: airports")


def test_focus_and_typed_text_outlive_new_data(server: FixtureServer, reader: Reader) -> None:
    page = reader.open(server.url, "jobs")
    page.get_by_label("Name, id or state").fill("DELAYS")
    expect(page.get_by_role("link", name="backfill-2025")).to_have_count(0)
    before = server.reads.count("/jobs/overview")
    wait_until(lambda: server.reads.count("/jobs/overview") > before + 2, "new data")
    expect(page.get_by_label("Name, id or state")).to_be_focused()
    expect(page.get_by_label("Name, id or state")).to_have_value("DELAYS")


def test_table_is_sorted_by_a_column(server: FixtureServer, reader: Reader) -> None:
    page = reader.open(server.url, JOB)
    column = page.get_by_role("columnheader", name="Parallelism")
    column.get_by_role("button").click()
    expect(column).to_have_attribute("aria-sort", "ascending")
    cells = page.get_by_role("region", name="Vertices").locator("tbody td:nth-child(3)")
    assert cells.all_inner_texts() == ["1", "1", "2", "4", "4", "4"]
    column.get_by_role("button").click()
    expect(column).to_have_attribute("aria-sort", "descending")
    assert cells.all_inner_texts() == ["4", "4", "4", "2", "1", "1"]


def test_log_is_followed_and_filtered(server: FixtureServer, reader: Reader) -> None:
    cluster = server.cluster
    assert isinstance(cluster, SampleCluster)
    page = reader.open(server.url, "jobmanager/logs/jobmanager.log")
    lines = page.locator("pre.lines")
    expect(lines).to_contain_text("a heartbeat is late")
    expect(lines.locator(".bad")).to_contain_text(HOSTILE)
    cluster.log_lines.append("2026-11-26 10:03:00,000 INFO  the newest Ä line")
    expect(lines).to_contain_text("the newest Ä line\n")
    assert lines.inner_text().count("a heartbeat is late") == 1
    bottom = "element => element.scrollHeight - element.scrollTop - element.clientHeight < 4"
    wait_until(lambda: lines.evaluate(bottom), "the end to be in sight")
    page.get_by_label("Lines with").fill("HEARTBEAT")
    expect(lines).to_have_text("2026-11-26 10:02:58,000 WARN  jobmaster - a heartbeat is late\n")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save whole file").click()
    assert download.value.suggested_filename == "jobmanager.log"
    assert Path(download.value.path()).read_text().splitlines() == cluster.log_lines


def test_metric_is_added_and_its_values_collected(server: FixtureServer, reader: Reader) -> None:
    page = reader.open(server.url, f"{VERTEX}/metrics")
    page.get_by_label("Metrics with").fill("bytes")
    page.get_by_role("button", name="Add").click()
    chart = page.locator("figure", has_text="numBytesIn")
    expect(chart.get_by_role("img")).to_have_attribute("aria-label", re.compile("numBytesIn, least: .* to "))
    points = "element => element.getAttribute('points').split(' ').length"
    wait_until(lambda: chart.locator("polyline").first.evaluate(points) > 3, "values to be collected")
    page.get_by_label("Of the subtasks").select_option("sum")
    expect(chart.locator("polyline")).to_have_count(1)
    chart.get_by_role("button", name="Remove numBytesIn").click()
    expect(chart).to_have_count(0)


def test_colours_are_chosen_and_kept(server: FixtureServer, reader: Reader) -> None:
    page = reader.open(server.url, "jobs")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_label("Colours").select_option("dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.reload()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_addresses_of_flinks_dashboard_lead_here(server: FixtureServer, reader: Reader) -> None:
    page = reader.open(server.url, f"job/running/{RUNNING}/checkpoints")
    expect(page.locator("main")).to_contain_text("savepoint-a1a1a1-0f")
    page = reader.open(server.url, "task-manager/tm-1/logs")
    expect(page.locator("main")).to_contain_text("jobmanager.log")


def test_hidden_page_neither_asks_nor_listens(server: FixtureServer, reader: Reader) -> None:
    page = reader.open(server.url, JOB)
    wait_until(lambda: server.listeners, "the page to listen")
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: true, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    wait_until(lambda: not server.listeners, "the page to stop listening")
    page.evaluate(
        "Object.defineProperty(document, 'hidden', {value: false});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    wait_until(lambda: server.listeners, "the page to listen again")


def test_failed_and_canceled_jobs_say_so(server: FixtureServer, reader: Reader) -> None:
    page = reader.open(server.url, f"job/{FAILED}/exceptions")
    expect(page.locator("li.card").first).to_contain_text("the job ended")
    traceback = page.get_by_role("region", name="Python traceback")
    expect(traceback).to_have_text(
        re.compile(r"^Traceback .*flights\.py.*ValueError: [^\t]*'NA'$", re.DOTALL)
    )
    expect(page.get_by_text("at org.apache.spark").first).to_be_hidden()
    expect(reader.open(server.url, f"job/{CANCELED}").locator("h1 + .badge")).to_have_text("CANCELED")


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("code: message", {"first": "code: message", "python": "", "rest": ""}),
        ("a.B: broken\n\tat x.Y", {"first": "a.B: broken", "python": "", "rest": "at x.Y"}),
        (
            "Traceback (most recent call last):\n  File \"a.py\", line 1\n    x\nKeyError: 'k'",
            {
                "first": "KeyError: 'k'", "rest": "",
                "python": "Traceback (most recent call last):\n  File \"a.py\", line 1\n    x\nKeyError: 'k'",
            },
        ),
    ],
)  # fmt: skip
def test_traceback_is_found(
    text: str, wanted: dict[str, str], steady_server: FixtureServer, desk: Reader
) -> None:
    assert call(desk, steady_server, "job/exceptions.js", "split", text) == wanted


@pytest.mark.gate
def test_graph_is_laid_out(steady_server: FixtureServer, desk: Reader) -> None:
    ids = list("abcdef")
    edges = [{"from": pair[0], "to": pair[1]} for pair in ("ab", "ac", "bd", "cd", "ad", "ef")]
    size = {"along": 10, "across": 4, "layerGap": 5, "gap": 2}
    made = call(desk, steady_server, "parts/layout.js", "layout", ids, edges, size)
    places = made["places"]
    assert {node: place["along"] for node, place in places.items()} == {
        "a": 0,
        "e": 0,
        "b": 15,
        "c": 15,
        "f": 15,
        "d": 30,
    }
    for layer in ("ae", "bcf"):
        across = sorted(places[node]["across"] for node in layer)
        assert all(other - one >= 6 for one, other in itertools.pairwise(across)), "nodes overlap"
    assert min(place["across"] for place in places.values()) >= 0
    through = next(route for route in made["routes"] if route["from"] + route["to"] == "ad")
    assert [point["along"] for point in through["points"]] == [10, 15, 25, 30]
    # no plan has one, but whoever draws must not hang
    circle = [{"from": "a", "to": "b"}, {"from": "b", "to": "a"}]
    assert set(
        call(desk, steady_server, "parts/layout.js", "layout", ["a", "b"], circle, size)["places"]
    ) == {"a", "b"}


@pytest.mark.parametrize(
    "function, value, wanted",
    [
        ("count", None, "–"), ("count", "NaN", "–"), ("count", 0, "0"), ("count", 1234567, "1,234,567"),
        ("count", -9223372036854775808, "–"), ("short", 15_300, "15.3k"), ("short", 2.5e9, "2.5G"),
        ("bytes", -1, "–"), ("bytes", 1536, "1.5 KiB"), ("duration", -1, "–"), ("duration", 999, "999 ms"),
        ("duration", 59_999, "60 s"), ("duration", 61_000, "1 min 1 s"), ("duration", 90_061_000, "1 d 1 h"),
        ("time", 0, "–"), ("percent", 0.256, "26 %"), ("bytesPerSecond", 2048, "2 KiB/s"),
        ("descriptionLines", "a &lt;b&gt;<br/>+- c&#92;d &amp;lt;<br/>", ["a <b>", "+- c\\d &lt;"]),
    ],
)  # fmt: skip
def test_values_are_written(
    function: str, value: Any, wanted: Any, steady_server: FixtureServer, desk: Reader
) -> None:
    assert call(desk, steady_server, "core/format.js", function, value) == wanted


def call(reader: Reader, server: FixtureServer, module: str, function: str, *arguments: Any) -> Any:
    """The result of a function of the dashboard, in the browser."""
    if not reader.page.url.startswith(server.url):
        reader.open(server.url, "overview")
    return reader.page.evaluate(
        """async ([module, name, values]) => {
            const made = (await import(new URL(`dashboard/${module}`, document.baseURI)))[name](...values);
            const plain = (key, value) => value instanceof Map ? Object.fromEntries(value) : value;
            return JSON.parse(JSON.stringify(made, plain));
        }""",
        [module, function, list(arguments)],
    )


def test_what_is_asked_for_while_data_are_loaded_is_loaded_after(
    steady_server: FixtureServer, desk: Reader
) -> None:
    """The next look by itself would be in an hour."""
    page = desk.open(steady_server.url, "overview")
    page.evaluate(
        """async () => {
            const { Visit } = await import(new URL("dashboard/core/visit.js", document.baseURI));
            const ends = [];
            window.loads = () => ends.length;
            const load = () => new Promise((end) => ends.push(end));
            const shell = { refreshMs: 3_600_000, connected() {} };
            const place = { key: "test", params: {}, rest: [] };
            const visit = new Visit(place, { load, view: () => [] }, shell, document.createElement("main"));
            const shown = visit.start();
            visit.refresh();
            ends[0]({});
            await shown;
        }"""
    )
    wait_until(lambda: page.evaluate("window.loads()") == 2, "the second load", PATIENCE.page_s)


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
