"""When one more master is asked for."""

from __future__ import annotations

import threading

from tests.patience import PATIENCE
from yarnflow.entrypoint.master.master_count import PATIENCE_MS, PENDING_MS, MasterCount, keep_masters
from yarnflow.errors import ZooKeeperUnavailable
from yarnflow.testing.runtime import ManualClock


def test_a_master_that_is_restarted_is_not_replaced() -> None:
    count = MasterCount(2)
    assert not count.start_one(1, 0)
    assert not count.start_one(1, PATIENCE_MS - 1)
    assert not count.start_one(2, PATIENCE_MS)
    assert not count.start_one(1, PATIENCE_MS + 1), "the time before it came back is counted"


def test_one_at_a_time() -> None:
    count = MasterCount(3)
    count.start_one(1, 0)
    assert count.start_one(1, PATIENCE_MS)
    assert not count.start_one(1, PATIENCE_MS + PENDING_MS - 1)
    assert count.start_one(1, PATIENCE_MS + PENDING_MS), "one that never comes is waited for without end"
    assert count.start_one(2, PATIENCE_MS + PENDING_MS + 1), "the first has come, the second is lacking"


def test_enough_is_enough() -> None:
    count = MasterCount(1)
    assert not any(count.start_one(1, at_ms) for at_ms in range(0, 200_000, 1_000))


def test_a_silent_zookeeper_starts_no_masters() -> None:
    ended = threading.Event()
    asked: list[str] = []

    def masters() -> int:
        ended.set()
        raise ZooKeeperUnavailable("nobody answers")

    keep_masters(2, masters, lambda: asked.append("one"), ManualClock(), ended).join(PATIENCE.thread_s)
    assert not asked
