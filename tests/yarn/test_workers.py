from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.patience import PATIENCE
from yarnflow.core.resources.provider import ProviderState, WorkerExit
from yarnflow.core.yarn import Application, ApplicationState, ClusterLimits, FinalStatus, Queue
from yarnflow.errors import YarnUnavailable
from yarnflow.testing.skein_clients import FakeSkeinApplication
from yarnflow.testing.yarn_cluster import FakeYarnCluster
from yarnflow.yarn.container_exit import ContainerExit
from yarnflow.yarn.workers import YarnWorkers


def full_cluster() -> FakeYarnCluster:
    """Nothing is left in the queue of the job."""
    cluster = FakeYarnCluster(
        Application(
            FakeSkeinApplication.id, "job", "u", "root.small", ApplicationState.RUNNING, FinalStatus.UNDEFINED
        )
    )
    cluster.all_queues = [
        Queue("root", "root", leaf=False),
        Queue("small", "root.small", capacity_percent=20, max_capacity_percent=20, used_percent=20),
    ]
    cluster.cluster_limits = ClusterLimits(8192, 8, 16384, 4096, 16, 4, 2)
    return cluster


class FakeNodes:
    def exit(self, node: str, container_id: str, log_name: str) -> ContainerExit:
        return ContainerExit(7, f"exit status 7 on {node}, {log_name}")


class Watched:
    """Workers stepped by hand, with a clock of their own."""

    def __init__(self, initial: int = 0, cluster: Any = None, nodes: Any = None) -> None:
        self.client = FakeSkeinApplication(initial)
        self.now_s = 100.0
        self.workers = YarnWorkers(self.client, cluster, nodes, monotonic=lambda: self.now_s)
        self.exits: list[WorkerExit] = []
        self.states: list[ProviderState] = []
        self.canceled: list[tuple[int, int]] = []
        self.workers.on_exit(self.exits.append)
        self.workers.on_state(self.states.append)
        self.workers.on_requests_canceled(lambda asked, withdrawn: self.canceled.append((asked, withdrawn)))

    def step(self, seconds: float = 0.25) -> float:
        self.now_s += seconds
        return self.workers.step()


def test_a_request_is_open_until_it_is_granted() -> None:
    w = Watched()
    w.step()
    w.workers.request_workers(2)
    assert w.step() < 1.0
    w.client.grant(1)
    w.step()
    w.client.grant(0)
    assert w.step() == 1.0
    assert w.states == [
        ProviderState(2),
        ProviderState(1, "", ("taskmanager_1",)),
        ProviderState(0, "", ("taskmanager_0", "taskmanager_1")),
    ]


def test_nothing_new_is_not_told_again() -> None:
    w = Watched(initial=1)
    for _ in range(4):
        w.step()
    assert w.states == [ProviderState(1)]


def test_containers_of_the_service_from_the_start_count_as_requested() -> None:
    w = Watched(initial=2)
    w.client.grant(0)
    w.step()
    assert w.states == [ProviderState(1, "", ("taskmanager_0",))]


def test_requests_that_were_not_sent_are_canceled_at_once() -> None:
    w = Watched()
    w.workers.request_workers(3)
    assert w.workers.cancel_requests(2) == 2
    w.step()
    assert w.client.states() == ["REQUESTED"]
    assert w.canceled == []


def test_the_youngest_open_requests_are_withdrawn_and_are_no_exits() -> None:
    w = Watched(initial=3)
    w.client.grant(0)
    w.step()
    w.workers.request_workers(1)
    # one of the four was not sent yet, one is granted: three can be had
    assert w.workers.cancel_requests(5) is None
    w.step()
    assert w.canceled == [(5, 3)]
    assert w.client.states() == ["RUNNING", "KILLED", "KILLED"]
    assert w.exits == []
    assert w.states[-1] == ProviderState(0, "", ("taskmanager_0",))


def test_one_of_two_is_withdrawn() -> None:
    w = Watched(initial=2)
    w.step()
    w.workers.cancel_requests(1)
    w.step()
    assert w.client.states() == ["REQUESTED", "KILLED"]
    assert w.canceled == [(1, 1)]


def test_withdrawals_count_though_the_next_one_fails() -> None:
    """Else the JobManager would wait for a request that is gone."""
    w = Watched(initial=3)
    w.step()

    def one_kill_is_done(call: tuple[Any, ...]) -> None:
        if call[0] == "kill" and "KILLED" in w.client.states():
            raise ConnectionError("the ApplicationMaster is busy")

    w.client.before = one_kill_is_done
    assert w.workers.cancel_requests(2) is None
    w.step()
    assert w.canceled == [] and w.client.states() == ["REQUESTED", "REQUESTED", "KILLED"]
    w.client.before = lambda call: None
    w.step()
    assert w.canceled == [(2, 2)] and w.client.states() == ["REQUESTED", "KILLED", "KILLED"]


def test_what_was_granted_just_now_is_not_withdrawn() -> None:
    w = Watched(initial=1)
    w.step()
    w.workers.cancel_requests(1)
    w.client.grant(0)
    w.step()
    assert w.client.states() == ["RUNNING"]
    assert w.canceled == [(1, 0)]


def test_a_released_worker_is_reported_once_as_released() -> None:
    w = Watched(initial=1)
    w.client.grant(0)
    w.step()
    w.workers.release_worker("taskmanager_0")
    w.workers.release_worker("taskmanager_0")
    w.step()
    w.step()
    assert [(e.worker_id, e.released) for e in w.exits] == [("taskmanager_0", True)]
    assert w.client.calls.count(("kill", "taskmanager_0")) == 1


@pytest.mark.parametrize("worker_id", ["taskmanager_77", "nonsense", ""])
def test_unknown_workers_are_not_released(worker_id: str) -> None:
    w = Watched(initial=1)
    w.workers.release_worker(worker_id)
    w.step()
    assert w.client.states() == ["REQUESTED"]
    assert not [call for call in w.client.calls if call[0] == "kill"]


def test_a_worker_that_dies_is_reported_with_what_its_node_says() -> None:
    w = Watched(initial=1, nodes=FakeNodes())
    w.client.grant(0)
    w.step()
    w.client.end(0, message="Container failed during execution, see logs for more information.")
    w.step()
    w.step()
    assert w.exits == [
        WorkerExit(
            "taskmanager_0",
            7,
            "container container_1_0001_01_000002 on node1:8042: "
            "exit status 7 on node1:8042, taskmanager.log",
        )
    ]


def test_a_worker_that_was_never_seen_running_is_reported_as_well() -> None:
    w = Watched(initial=1)
    w.step()
    w.client.grant(0)
    w.client.end(0, message="Container released on a *lost* node")
    w.step()
    assert [(e.worker_id, e.exit_status) for e in w.exits] == [("taskmanager_0", -100)]


def test_what_ended_before_the_first_look_is_reported() -> None:
    w = Watched(initial=1)
    w.client.grant(0)
    w.client.end(0, "SUCCEEDED")
    w.step()
    w.step()
    assert [(e.worker_id, e.exit_status) for e in w.exits] == [("taskmanager_0", 0)]


def test_ended_containers_are_asked_for_only_when_one_is_missing() -> None:
    w = Watched(initial=1)
    w.client.grant(0)
    for _ in range(5):
        w.step()
    assert len([call for call in w.client.calls if "FAILED" in call]) == 1


def test_an_end_is_reported_although_the_question_how_failed() -> None:
    w = Watched(initial=1)
    w.client.grant(0)
    w.step()
    w.client.end(0)

    def only_live_are_told(call: tuple[Any, ...]) -> None:
        if "FAILED" in call:
            raise ConnectionError("no answer")

    w.client.before = only_live_are_told
    w.step()
    assert w.exits == []
    w.client.before = lambda call: None
    w.step()
    w.step()
    assert [ended.worker_id for ended in w.exits] == ["taskmanager_0"]


def test_requests_that_take_long_are_explained_by_the_queue() -> None:
    w = Watched(initial=2, cluster=full_cluster())
    w.step()
    w.step(4.0)
    assert w.states == [ProviderState(2)]
    w.step(8.0)
    message = w.states[-1].message
    assert message.startswith("2 containers of 1728 MiB requested 12 s ago; queue root.small is at 20 %")
    assert "20 % at most" in message
    assert "4096 MiB of 16384 MiB free" in message
    w.step(1.0)
    assert len(w.states) == 2
    w.step(5.0)
    assert "requested 18 s ago" in w.states[-1].message
    w.client.grant(0)
    w.client.grant(1)
    w.step()
    assert w.states[-1] == ProviderState(0, "", ("taskmanager_0", "taskmanager_1"))


def test_requests_that_take_long_are_told_without_the_resource_manager_too() -> None:
    cluster = full_cluster()
    cluster.error = YarnUnavailable("nobody there")
    w = Watched(initial=1, cluster=cluster)
    w.step()
    w.step(6.0)
    assert w.states[-1] == ProviderState(1, "1 container requested 6 s ago (nobody there)")


def test_what_was_asked_for_is_done_when_the_application_master_answers_again() -> None:
    w = Watched(initial=2)
    w.client.grant(0)
    w.step()
    w.client.down = ConnectionError("no")
    w.workers.request_workers(1)
    w.workers.cancel_requests(2)
    w.workers.release_worker("taskmanager_0")
    assert w.step() == 1.0
    w.client.down = None
    w.step()
    assert w.client.states() == ["KILLED", "KILLED"]
    assert w.canceled == [(2, 2)]
    assert [e.worker_id for e in w.exits] == ["taskmanager_0"]


def test_the_thread_does_what_is_asked_for() -> None:
    w = Watched()
    came = threading.Event()
    w.workers.on_state(lambda state: came.set() if state.ungranted == 2 else None)
    w.workers.start()
    w.workers.request_workers(2)
    assert came.wait(PATIENCE.thread_s)
    w.workers.close()
    assert w.client.states() == ["REQUESTED", "REQUESTED"]
