"""Lines for logs and pipes, a table for terminals."""

from __future__ import annotations

import contextlib
import io
from dataclasses import replace

import pytest

from yarnflow.cli.view import LiveView, OutputPump, PlainView, make_view, query_cells, time_text
from yarnflow.client.cluster import Page
from yarnflow.core.checkpoint.messages import JobStop
from yarnflow.core.ids import JobId
from yarnflow.core.messages import ClusterOverview, ErrorInfo, FailureInfo, QueryProgress
from yarnflow.core.states import JobStatus, RestartLevel
from yarnflow.testing.gateways.dispatcher import details

JOB = JobId("ab" * 16)
S = JobStatus
TITLE = f"Job flights ({JOB})"


def test_states_between_two_polls_are_not_lost() -> None:
    out = io.StringIO()
    view = PlainView(out)
    view.changed(replace(details(JOB, 0, S.CREATED), timestamps_ms={"INITIALIZING": 1, "CREATED": 2}), None)
    times = {"INITIALIZING": 1, "CREATED": 2, "RUNNING": 3, "FAILING": 4, "RESTARTING": 4, "FAILED": 5}
    view.changed(replace(details(JOB, 1, S.FAILED), timestamps_ms=times), None)
    view.changed(replace(details(JOB, 2, S.FAILED), timestamps_ms=times), None)
    assert out.getvalue().splitlines() == [
        f"{TITLE} switched from state INITIALIZING to CREATED.",
        f"{TITLE} switched from state CREATED to RUNNING.",
        f"{TITLE} switched from state RUNNING to FAILING.",
        f"{TITLE} switched from state FAILING to RESTARTING.",
        f"{TITLE} switched from state RESTARTING to FAILED.",
    ]


def test_states_entered_in_one_millisecond_are_said_once() -> None:
    out = io.StringIO()
    view = PlainView(out)
    times = {"INITIALIZING": 1, "CREATED": 1}
    view.changed(replace(details(JOB, 0, S.CREATED), timestamps_ms=times), None)
    view.changed(replace(details(JOB, 1, S.RUNNING), timestamps_ms={**times, "RUNNING": 1}), None)
    assert out.getvalue().splitlines() == [
        f"{TITLE} switched from state INITIALIZING to CREATED.",
        f"{TITLE} switched from state CREATED to RUNNING.",
    ]


def test_return_to_running() -> None:
    out = io.StringIO()
    view = PlainView(out)
    for version, status in enumerate([S.RUNNING, S.RESTARTING, S.RUNNING]):
        # times are of the first entry only
        times = {"RUNNING": 5, "RESTARTING": 9}
        times = times if version else {"RUNNING": 5}
        view.changed(replace(details(JOB, version, status), timestamps_ms=times), None)
    assert out.getvalue().splitlines() == [
        f"{TITLE} switched from state RUNNING to RESTARTING.",
        f"{TITLE} switched from state RESTARTING to RUNNING.",
    ]


def test_failures_and_waiting_are_said_once() -> None:
    out = io.StringIO()
    view = PlainView(out)
    failure = FailureInfo(1, ErrorInfo("EXECUTOR_LOST", "executor 1 ended"), "tm-1")
    state = replace(details(JOB, 0, S.RUNNING), failures=(failure,), waiting_for="2 slots")
    view.changed(state, None)
    view.changed(replace(state, version=1), None)
    assert out.getvalue().splitlines() == [
        f"{TITLE}: failure on tm-1 (QUERY): executor 1 ended",
        f"{TITLE} waits for 2 slots.",
    ]


def test_what_happened_before_is_one_line() -> None:
    out = io.StringIO()
    view = PlainView(out)
    old = FailureInfo(1, ErrorInfo("EXECUTOR_LOST", "executor 1 ended"), "tm-1")
    times = {"CREATED": 1, "RUNNING": 2, "RESTARTING": 3}
    before = replace(details(JOB, 5, S.RESTARTING), timestamps_ms=times, failures=(old,), waiting_for="slots")
    view.begin(before)
    view.changed(before, None)
    new = replace(old, error=ErrorInfo("EXECUTOR_LOST", "executor 2 ended"))
    after = replace(details(JOB, 6, S.FINISHED), timestamps_ms={**times, "FINISHED": 9}, failures=(old, new))
    view.changed(after, None)
    assert out.getvalue().splitlines() == [
        f"{TITLE} is RESTARTING and waits for slots.",
        f"{TITLE}: failure on tm-1 (QUERY): executor 2 ended",
        f"{TITLE} switched from state RESTARTING to FINISHED.",
    ]


def test_start_up_times() -> None:
    out = io.StringIO()
    view = PlainView(out, verbose=True)
    milestones = {"SUBMITTED": 1000, "JVM_UP": 2500, "SLOTS": 1100}
    view.changed(replace(details(JOB, 0, S.RUNNING), milestones_ms=milestones), None)
    view.close()
    assert out.getvalue().splitlines()[1:] == [
        "     0.00 s  SUBMITTED",
        "     0.10 s  SLOTS",
        "     1.50 s  JVM_UP",
    ]


def test_no_table_where_nobody_can_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not make_view(stream=io.StringIO()).live

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    assert make_view(stream=Terminal()).live
    monkeypatch.setenv("TERM", "dumb")
    assert not make_view(stream=Terminal()).live


def test_what_lets_a_browser_in_is_for_a_terminal_alone() -> None:
    page = Page("http://jm/#/job/1", "http://jm/?code=x#/job/1")
    for is_terminal, shown in ((True, page.link), (False, page.address)):
        out = io.StringIO()
        out.isatty = lambda is_terminal=is_terminal: is_terminal  # type: ignore[method-assign, misc]
        PlainView(out).submitted(JOB, "flights", False, page)
        assert out.getvalue().splitlines()[-1] == f"Dashboard: {shown}"


def test_table_shows_what_the_job_manager_reports() -> None:
    out = io.StringIO()
    view = LiveView(out)
    view.submitted(JOB, "flights", False)
    query = QueryProgress("sink-1", 7, 0, 500, 1000, 200, 2000.0, 2000.0, 1_700_000_000_000, 8000, 1600)
    failure = FailureInfo(1, ErrorInfo("X", "executor 1 ended"), "tm-1", recovered=True)
    state = replace(details(JOB, 1, S.RUNNING), queries=(query,), failures=(failure,), restarts=1)
    state = replace(state, stop=JobStop("hdfs:///sp/savepoint-1", "r"))
    view.changed(state, ClusterOverview(2, 4, 3, 1, 0, 0, 0, "x"))
    view.close()
    text = out.getvalue()
    for expected in (
        "RUNNING",
        "TaskManagers 2, free slots 3/4",
        "restarts 1",
        "stopped with hdfs:///sp/savepoint-1",
        "2,000",
        "400",
        "8,000",
        "2023-11-14 22:13:20",
        "last failure: tm-1: executor 1 ended (recovered)",
    ):
        assert expected in text


def test_cells_before_the_first_batch() -> None:
    assert query_cells(QueryProgress("q")) == ("q", "0", "-", "0", "-", "-", "-")
    assert time_text(10**18) == "end of input"


def test_pump_carries_what_drivers_print(capsys: pytest.CaptureFixture[str]) -> None:
    import os

    pump = OutputPump()
    os.write(pump.write_fd, "1> grüße\nlast without newline".encode())
    pump.close()
    assert capsys.readouterr().out == "1> grüße\nlast without newline"


def test_a_drained_pump_has_carried_all(capsys: pytest.CaptureFixture[str]) -> None:
    import os

    pump = OutputPump()
    for text in ("one\n", "no end", "\0 is no mark of ours\n"):
        os.write(pump.write_fd, text.encode())
        pump.drain()
        assert capsys.readouterr().out == text
    closed = io.StringIO()
    closed.close()
    with contextlib.redirect_stdout(closed):
        os.write(pump.write_fd, b"nobody sees this\n")
        pump.drain()
    os.write(pump.write_fd, b"last\n")
    pump.close()
    assert capsys.readouterr().out == "last\n"


def test_a_failover_is_no_failure_and_no_late_news() -> None:
    out = io.StringIO()
    view = PlainView(out)
    adopted = FailureInfo(5, ErrorInfo("HA", "the master was lost"), "", RestartLevel.MASTER, True)
    running = details(JobId("ab" * 16), 1, JobStatus.RUNNING)
    view.changed(replace(running, timestamps_ms={"RUNNING": 1}), None)
    # the new leader's times; its RECONCILING was over before anybody asked
    taken_over = {"RUNNING": 9, "RECONCILING": 8}
    view.changed(replace(running, version=2, timestamps_ms=taken_over, failures=(adopted,)), None)
    ended = details(JobId("ab" * 16), 3, JobStatus.FINISHED)
    view.changed(replace(ended, timestamps_ms={**taken_over, "FINISHED": 20}, failures=(adopted,)), None)
    (line,) = out.getvalue().splitlines()
    assert line.endswith("switched from state RUNNING to FINISHED.")


def test_reconciling_is_shown_while_it_lasts() -> None:
    out = io.StringIO()
    view = PlainView(out)
    for status in (JobStatus.RUNNING, JobStatus.RECONCILING, JobStatus.RUNNING):
        view.changed(details(JobId("ab" * 16), 1, status), None)
    states = [line.partition("from state ")[2] for line in out.getvalue().splitlines()]
    assert states == ["RUNNING to RECONCILING.", "RECONCILING to RUNNING."]
