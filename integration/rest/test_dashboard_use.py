"""What a reader does with the dashboard, in a real browser over a cluster that is not there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from integration.conftest import wait_until
from integration.rest.conftest import Reader, tab_to, violations
from integration.rest.fixture_server import FixtureServer
from integration.rest.sample_cluster import SampleCluster
from integration.rest.sample_values import (
    HOSTILE,
    RUNNING,
    now_ms,
)
from integration.rest.test_dashboard import JOB, VERTEX

pytestmark = pytest.mark.may_rerun("a browser draws when it likes")


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
