"""How state is moved, without Spark."""

from __future__ import annotations

import pytest

from yarnflow.errors import LeaseLost
from yarnflow.spark.checkpoints.moving import await_end


class Work:
    """Takes some looks."""

    def __init__(self, looks: int) -> None:
        self.looks = looks
        self.stopped = False

    def ended(self, seconds: float) -> bool:
        assert 0 < seconds <= 1
        self.looks -= 1
        return self.looks < 0

    def stop(self) -> None:
        self.stopped = True


def test_work_that_is_wanted_no_more_is_stopped() -> None:
    looks: list[int] = []

    def fence() -> None:
        looks.append(work.looks)
        if len(looks) == 3:
            raise LeaseLost("no more")

    work = Work(100)
    with pytest.raises(LeaseLost):
        await_end(work.ended, work.stop, fence)
    assert work.stopped and looks == [99, 98, 97]


def test_work_that_fails_is_stopped_and_such_that_ends_is_not() -> None:
    def fails(seconds: float) -> bool:
        raise ValueError("failed")

    work = Work(3)
    await_end(work.ended, work.stop, lambda: None)
    assert not work.stopped
    with pytest.raises(ValueError, match="failed"):
        await_end(fails, work.stop, lambda: None)
    assert work.stopped
