"""The checker of histories finds what it is there to find."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any, cast

import pytest

from integration.faults.history import Seen, Watcher, reachable, verdict
from yarnflow.core.states import JobStatus as S

pytestmark = pytest.mark.gate

FIRST = Seen(epoch=1, version=1, job_id="a", status=S.CREATED)


class _Cluster:
    """One that nobody asks."""

    client_options = ("-Dhigh-availability.type=zookeeper",)


class _Hanging(Watcher):
    """Its second question is not answered before it is let go."""

    def __init__(self) -> None:
        self.asked, self.let_go = threading.Event(), threading.Event()
        super().__init__(cast(Any, _Cluster()), "ab" * 16)

    def _watch(self) -> None:
        self.history.append(FIRST)
        self._wait_for_an_answer()

    def _wait_for_an_answer(self) -> None:
        self.asked.set()
        self.let_go.wait()


def _seen(*statuses: S, epoch: int = 1) -> list[Seen]:
    return [replace(FIRST, status=status, version=n, epoch=epoch) for n, status in enumerate(statuses)]


@pytest.mark.parametrize(
    "statuses",
    [
        (S.INITIALIZING, S.CREATED, S.RUNNING, S.RESTARTING, S.RUNNING, S.FINISHED),
        # a client does not see every state
        (S.INITIALIZING, S.FINISHED),
        (S.RECONCILING, S.RUNNING, S.RUNNING, S.CANCELLING, S.CANCELED, S.CANCELED),
        (S.RUNNING, S.FAILING, S.FAILED),
    ],
)
def test_a_way_through_the_table_is_right(statuses: tuple[S, ...]) -> None:
    assert verdict(_seen(*statuses)) == ""


@pytest.mark.parametrize(
    "statuses",
    [
        (S.RUNNING, S.CREATED),
        (S.RUNNING, S.INITIALIZING),
        (S.RUNNING, S.RECONCILING),
        (S.RESTARTING, S.RECONCILING),
        (S.FAILING, S.RUNNING),
        (S.FINISHED, S.RUNNING),
        (S.RUNNING, S.SUSPENDED),
        (S.CANCELED, S.FINISHED),
    ],
)
def test_a_state_that_no_way_leads_to_is_named(statuses: tuple[S, ...]) -> None:
    found = verdict(_seen(*statuses))
    assert statuses[0].name in found and statuses[1].name in found


def test_the_next_leader_begins_again_but_changes_no_result() -> None:
    assert verdict(_seen(S.RUNNING) + _seen(S.RECONCILING, S.RUNNING, epoch=2)) == ""
    assert verdict(_seen(S.FINISHED) + _seen(S.FINISHED, epoch=2)) == ""
    assert "a result changed" in verdict(_seen(S.FINISHED) + _seen(S.RECONCILING, epoch=2))


def test_a_canceled_job_never_goes_on_under_any_leader() -> None:
    assert verdict(_seen(S.CANCELLING) + _seen(S.INITIALIZING, S.CANCELLING, S.CANCELED, epoch=2)) == ""
    found = verdict(_seen(S.CANCELLING) + _seen(S.INITIALIZING, S.RUNNING, epoch=2))
    assert "a job that was being canceled went on" in found


def test_what_goes_back_is_named() -> None:
    later = replace(FIRST, version=2, checkpoints=3, batches={"q": 7})
    assert verdict([FIRST, later, replace(later, batches={}), replace(later, batches={"q": 8})]) == ""
    assert "query q went back" in verdict([later, replace(later, batches={"q": 6})])
    assert "completed checkpoints are gone" in verdict([later, replace(later, checkpoints=2)])
    assert "an older state was told" in verdict([later, replace(later, version=1)])
    assert "an earlier leader answered" in verdict([replace(later, epoch=2), later])
    assert "another job" in verdict([later, replace(later, job_id="b")])


def test_ways_are_those_of_the_table() -> None:
    ways = reachable()
    assert ways[S.FINISHED] == {S.FINISHED}
    assert ways[S.CANCELLING] == {S.CANCELLING, S.CANCELED}
    assert ways[S.FAILING] == {S.FAILING, S.FAILED, S.CANCELLING, S.CANCELED}


def test_a_watcher_that_hangs_is_named() -> None:
    watcher = _Hanging()
    watcher.asked.wait()
    with pytest.raises(AssertionError) as raised:
        watcher.end(timeout_s=0)
    text = str(raised.value)
    assert f"the watcher of job {'ab' * 16} hangs" in text
    assert str(FIRST) in text and "_wait_for_an_answer" in text
    watcher.let_go.set()
    assert watcher.end() == [FIRST]


def test_what_a_watcher_failed_with_is_raised() -> None:
    class Failing(Watcher):
        def _watch(self) -> None:
            raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        Failing(cast(Any, _Cluster()), "ab" * 16).end()
