from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from yarnflow.core.yarn import ApplicationSpec, ClusterLimits, ContainerSpec, Queue
from yarnflow.errors import QueueUnavailable, RequestTooLarge
from yarnflow.testing.yarn_cluster import FakeYarnCluster
from yarnflow.yarn.web.admission import check_application, check_room, find_queue, outlook

QUEUES = (
    Queue("root", "root", leaf=False),
    Queue("default", "root.default", capacity_percent=80, max_capacity_percent=100, used_percent=81.4),
    Queue("small", "root.small", "RUNNING", 20, 20, 0, max_memory_mib=2048),
    Queue("closed", "root.closed", state="STOPPED"),
)
LIMITS = ClusterLimits(8192, 8, 16384, 4096, 16, 4, 2)


def _cluster() -> FakeYarnCluster:
    cluster = FakeYarnCluster()
    cluster.all_queues, cluster.cluster_limits = QUEUES, LIMITS
    return cluster


def _spec(
    queue: str = "default", master: tuple[int, int] = (1024, 1), tm: tuple[int, int] = (1728, 1)
) -> ApplicationSpec:
    return ApplicationSpec("a", queue, (), ContainerSpec(*master, ""), ContainerSpec(*tm, ""))


@pytest.mark.parametrize("name", ["default", "root.default"])
def test_queues_go_by_both_of_their_names(name: str) -> None:
    found = find_queue(QUEUES, name)
    assert found is not None and found.path == "root.default"
    check_application(_spec(name), _cluster())


def test_a_queue_that_does_not_exist_is_answered_with_those_that_do() -> None:
    with pytest.raises(QueueUnavailable, match=r"no queue nope \(yarn.application.queue\)") as raised:
        find_queue(QUEUES, "nope")
    assert "root.default, root.small" in str(raised.value)
    assert "root.closed" not in str(raised.value)


def test_a_queue_that_yarn_may_make_is_left_to_yarn() -> None:
    assert find_queue([replace(QUEUES[0], creates_children=True)], "nope") is None


def test_a_parent_takes_no_applications() -> None:
    with pytest.raises(QueueUnavailable, match="queues below it.*root.default, root.small"):
        find_queue(QUEUES, "root")


def test_a_stopped_queue_takes_no_applications() -> None:
    with pytest.raises(QueueUnavailable, match="root.closed.* is stopped.*others: root.default, root.small"):
        find_queue(QUEUES, "closed")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (_spec(tm=(9000, 1)), "9000 MiB for the TaskManager is more than the 8192 MiB.*taskmanager.memory"),
        (_spec(master=(9000, 1)), "9000 MiB for the ApplicationMaster.*8192 MiB.*jobmanager.memory"),
        (_spec(tm=(1, 9)), "9 vcores for the TaskManager is more than the 8 vcores.*yarn.containers.vcores"),
        (_spec(master=(1, 9)), "9 vcores for the ApplicationMaster.*yarn.appmaster.vcores"),
        (_spec("small", tm=(2049, 1)), "2049 MiB for the TaskManager.*2048 MiB that queue root.small gives"),
    ],
)
def test_containers_above_the_maximum_are_refused_with_both_numbers(spec: Any, said: str) -> None:
    with pytest.raises(RequestTooLarge, match=said):
        check_application(spec, _cluster())


def test_containers_of_the_maximum_are_possible() -> None:
    check_application(_spec(master=(8192, 8), tm=(8192, 8)), _cluster())


def test_the_outlook_says_how_full_the_queue_is() -> None:
    said = outlook(QUEUES[1], LIMITS, 1728)
    assert "root.default is at 81 % of the cluster (80 % guaranteed, 100 % at most)" in said
    assert said.endswith("4096 MiB of 16384 MiB free")


def test_the_outlook_says_what_the_queue_can_never_give() -> None:
    assert outlook(QUEUES[2], LIMITS, 4000).endswith(
        "one container needs 4000 MiB, and all applications of the queue together may have 3276 MiB"
    )


def test_the_outlook_of_a_cluster_without_nodes() -> None:
    assert "no running NodeManager" in outlook(QUEUES[1], replace(LIMITS, active_nodes=0), 10)


def test_a_queue_that_can_never_have_master_and_task_manager_at_once() -> None:
    limits = ClusterLimits(8192, 8, 16384, 16384, 16, 16, 2)
    small = Queue("small", "root.small", capacity_percent=20, max_capacity_percent=20)
    check_room(small, limits, 1500, 1776)
    with pytest.raises(RequestTooLarge, match="root.small may use 3276 MiB .* need 3277 MiB"):
        check_room(small, limits, 1500, 1777)
    # without a bound, or before any node is there, waiting may help
    check_room(Queue("default", "root.default", max_capacity_percent=100), limits, 9000, 9000)
    check_room(small, ClusterLimits(8192, 8, 0, 0, 0, 0, 0), 1500, 1777)
