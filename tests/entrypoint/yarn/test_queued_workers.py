"""Wishes for TaskManagers that come before there is anybody to fulfil them."""

from __future__ import annotations

from yarnflow.core.resources.provider import ProviderState, WorkerExit
from yarnflow.entrypoint.yarn.queued_workers import QueuedWorkers


class Owner:
    def __init__(self) -> None:
        self.said: list[tuple[str, int | str]] = []

    def request_workers(self, count: int) -> None:
        self.said.append(("request", count))

    def cancel_requests(self, count: int) -> int | None:
        self.said.append(("cancel", count))
        return None

    def release_worker(self, worker_id: str) -> None:
        self.said.append(("release", worker_id))


def test_early_wishes_are_passed_on() -> None:
    workers, owner = QueuedWorkers(), Owner()
    workers.request_workers(3)
    assert workers.cancel_requests(1) == 1
    workers.release_worker("taskmanager_0")
    workers.request_workers(2)
    workers.attach(owner)
    assert owner.said == [("release", "taskmanager_0"), ("request", 4)]


def test_no_more_is_withdrawn_than_was_asked_for() -> None:
    workers, owner = QueuedWorkers(), Owner()
    workers.request_workers(1)
    assert workers.cancel_requests(5) == 1
    workers.attach(owner)
    assert owner.said == []


def test_later_wishes_go_straight_through() -> None:
    workers, owner = QueuedWorkers(), Owner()
    workers.attach(owner)
    workers.request_workers(1)
    assert workers.cancel_requests(1) is None
    workers.release_worker("w")
    assert owner.said == [("request", 1), ("cancel", 1), ("release", "w")]


def test_each_master_has_power_over_its_own_workers_only() -> None:
    workers, owner = QueuedWorkers("application_1/"), Owner()
    workers.release_worker("application_1/taskmanager_0")
    workers.attach(owner)
    workers.release_worker("application_2/taskmanager_0")
    workers.release_worker("application_1/taskmanager_1")
    assert owner.said == [("release", "taskmanager_0"), ("release", "taskmanager_1")]
    assert workers.named_exit(WorkerExit("taskmanager_1", 3)) == WorkerExit("application_1/taskmanager_1", 3)
    state = ProviderState(1, "m", ("taskmanager_1",))
    assert workers.named_state(state) == ProviderState(1, "m", ("application_1/taskmanager_1",))
