"""Wishes for TaskManagers that come before there is anybody to fulfil them."""

from __future__ import annotations

from yarnflow.core.resources.provider import ProviderState, WorkerExit
from yarnflow.entrypoint.yarn.queued_workers import QueuedWorkers
from yarnflow.testing.resource_provider import FakeResourceProvider


def test_early_wishes_are_passed_on() -> None:
    workers, owner = QueuedWorkers(), FakeResourceProvider()
    workers.request_workers(3)
    assert workers.cancel_requests(1) == 1
    workers.release_worker("taskmanager_0")
    workers.request_workers(2)
    workers.attach(owner)
    assert owner.calls == [("release", "taskmanager_0"), ("request", 4)]


def test_no_more_is_withdrawn_than_was_asked_for() -> None:
    workers, owner = QueuedWorkers(), FakeResourceProvider()
    workers.request_workers(1)
    assert workers.cancel_requests(5) == 1
    workers.attach(owner)
    assert owner.calls == []


def test_later_wishes_go_straight_through() -> None:
    workers, owner = QueuedWorkers(), FakeResourceProvider()
    workers.attach(owner)
    workers.request_workers(1)
    assert workers.cancel_requests(1) is None
    workers.release_worker("w")
    assert owner.calls == [("request", 1), ("cancel", 1), ("release", "w")]


def test_each_master_has_power_over_its_own_workers_only() -> None:
    workers, owner = QueuedWorkers("application_1/"), FakeResourceProvider()
    workers.release_worker("application_1/taskmanager_0")
    workers.attach(owner)
    workers.release_worker("application_2/taskmanager_0")
    workers.release_worker("application_1/taskmanager_1")
    assert owner.calls == [("release", "taskmanager_0"), ("release", "taskmanager_1")]
    assert workers.named_exit(WorkerExit("taskmanager_1", 3)) == WorkerExit("application_1/taskmanager_1", 3)
    state = ProviderState(1, "m", ("taskmanager_1",))
    assert workers.named_state(state) == ProviderState(1, "m", ("application_1/taskmanager_1",))
