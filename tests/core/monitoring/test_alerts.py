"""Alerts begin when a condition has lasted, are told once, and end."""

from __future__ import annotations

from dataclasses import replace

from yarnflow.core.ids import JobId
from yarnflow.core.monitoring.alerts import (
    AlertBook,
    AlertRule,
    AlertSettings,
    JobObservation,
    Observation,
    Tell,
)

MINUTE = 60_000
SETTINGS = AlertSettings(
    checkpoint_max_age_ms=10 * MINUTE,
    restarts=3,
    restarts_window_ms=10 * MINUTE,
    lag_window_ms=5 * MINUTE,
    lag_min_records=100,
    no_task_managers_ms=MINUTE,
)
JOB = JobObservation(JobId("a" * 32), "flights", True, 0, 0, 0)


def told(
    observations: list[Observation], settings: AlertSettings = SETTINGS
) -> tuple[AlertBook, list[tuple[int, AlertRule, bool]]]:
    book, tells = AlertBook(settings), list[Tell]()
    for seen in observations:
        book, news = book.observe(seen)
        tells += news
    return book, [(tell.at_ms // MINUTE, tell.rule, tell.firing) for tell in tells]


def at(minute: int, *jobs: JobObservation, task_managers: int = 1) -> Observation:
    return Observation(minute * MINUTE, task_managers, jobs)


def test_an_old_checkpoint_is_told_once_and_its_end_too() -> None:
    old = replace(JOB, checkpoint_age_ms=11 * MINUTE)
    _, tells = told([at(0, JOB), at(1, old), at(2, old), at(3, old), at(4, old), at(5, JOB), at(6, JOB)])
    assert tells == [(3, AlertRule.NO_CHECKPOINT, True), (5, AlertRule.NO_CHECKPOINT, False)]


def test_a_new_master_hears_that_a_job_has_nothing_to_do_before_it_tells_of_its_old_checkpoint() -> None:
    old = replace(JOB, checkpoint_age_ms=500 * MINUTE)
    assert told([at(0, old), at(1, old), at(2, JOB), at(3, JOB)])[1] == []


def test_a_job_without_periodic_checkpoints_has_none_to_miss() -> None:
    old = replace(JOB, checkpoint_age_ms=11 * MINUTE, checkpointing=False)
    assert told([at(0, old), at(1, old)])[1] == []


def test_a_rule_of_zero_is_off() -> None:
    bad = replace(JOB, checkpoint_age_ms=99 * MINUTE, restarts=99, pending_records=10**9)
    off = AlertSettings()
    assert told([at(0, JOB, task_managers=0), at(99, bad, task_managers=0)], off)[1] == []


def test_restarts_count_within_their_window_only() -> None:
    def after(minute: int, restarts: int) -> Observation:
        return at(minute, replace(JOB, restarts=restarts))

    slow = [after(6 * n, n) for n in range(8)]
    assert told(slow)[1] == []
    quick = [after(0, 7), after(1, 8), after(2, 9), after(3, 10), after(14, 10)]
    assert told(quick)[1] == [(3, AlertRule.RESTART_LOOP, True), (14, AlertRule.RESTART_LOOP, False)]


def test_restarts_before_this_master_led_are_not_told_again() -> None:
    assert told([at(0, replace(JOB, restarts=50)), at(1, replace(JOB, restarts=50))])[1] == []


def lag(*values: int) -> list[Observation]:
    return [at(minute, replace(JOB, pending_records=value)) for minute, value in enumerate(values)]


def test_lag_must_grow_over_the_whole_window() -> None:
    assert told(lag(0, 50, 100, 150, 200))[1] == []
    assert told(lag(0, 50, 100, 150, 200, 250))[1] == [(5, AlertRule.LAG_GROWING, True)]


def test_lag_that_was_worked_off_in_between_does_not_grow() -> None:
    assert told(lag(40, 500, 900, 30, 700, 1000))[1] == []


def test_large_lag_that_shrinks_or_stays_is_no_alert() -> None:
    assert told(lag(*[10**6] * 8))[1] == []
    assert told(lag(10**6, 10**6 + 10, 10**6 + 20, 10**6 + 30, 10**6 + 40, 10**6 + 50, 10**6 + 60))[1] == []


def test_missing_task_managers_must_be_missing_for_a_while() -> None:
    gone = at(1, JOB, task_managers=0)
    assert told([at(0, JOB), gone, replace(at(1, JOB), at_ms=MINUTE + 30_000)])[1] == []
    assert told([at(0, JOB), gone, at(2, JOB, task_managers=0), at(3, JOB)])[1] == [
        (2, AlertRule.NO_TASK_MANAGERS, True),
        (3, AlertRule.NO_TASK_MANAGERS, False),
    ]


def test_a_cluster_without_jobs_needs_no_task_managers() -> None:
    assert told([at(0, task_managers=0), at(9, task_managers=0)])[1] == []


def test_the_end_of_a_job_ends_its_alerts_and_leaves_nothing() -> None:
    old = replace(JOB, checkpoint_age_ms=11 * MINUTE, pending_records=5)
    book, tells = told([at(0, old), at(2, old), at(3)])
    assert tells == [(2, AlertRule.NO_CHECKPOINT, True), (3, AlertRule.NO_CHECKPOINT, False)]
    assert not book.restarts and not book.pending
    assert all(subject == "" for _, subject in book.models)


def test_memory_does_not_grow_with_time() -> None:
    book, _ = told([at(minute, replace(JOB, pending_records=minute)) for minute in range(200)])
    assert len(book.pending[JOB.job_id]) <= 6 and len(book.restarts[JOB.job_id]) <= 11
