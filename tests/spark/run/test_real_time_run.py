"""Whether slots have enough task threads for real time."""

from __future__ import annotations

import pytest

from yarnflow.spark.run.real_time_run import too_few_threads


@pytest.mark.parametrize(
    ("needed", "slots", "threads_per_slot", "enough"),
    [(2, 2, 1, True), (4, 2, 2, True), (5, 2, 2, False), (2, 2, 0, True), (3, 2, 0, False)],
)
def test_all_tasks_run_at_the_same_time(
    needed: int, slots: int, threads_per_slot: int, enough: bool
) -> None:
    reason = too_few_threads(needed, slots, threads_per_slot)
    assert (reason == "") is enough
    if reason:
        assert f"runs {needed} tasks" in reason and f"have {slots * max(threads_per_slot, 1)} task" in reason
        assert "\n" not in reason
