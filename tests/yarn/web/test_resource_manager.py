from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.yarn.fakes import Answer, FakeDaemon, daemon
from yarnflow.core.yarn import ApplicationState, FinalStatus, Queue
from yarnflow.errors import ApplicationNotFound, YarnError, YarnUnavailable
from yarnflow.yarn.web.resource_manager import ResourceManagerRest

APP = "application_1795220280127_0031"
#: as Hadoop 3.5 answers, without what nobody reads
RUNNING: dict[str, Any] = {
    "id": APP,
    "user": "root",
    "name": "flights",
    "queue": "root.default",
    "state": "RUNNING",
    "finalStatus": "UNDEFINED",
    "progress": 10.0,
    "trackingUI": "ApplicationMaster",
    "trackingUrl": f"http://localhost:23638/proxy/{APP}/",
    "diagnostics": "",
    "applicationTags": "yarnflow,yarnflow-0123",
    "startedTime": 1795220555714,
    "finishedTime": 0,
    "amHostHttpAddress": "localhost:22085",
    "runningContainers": 3,
    "currentAppAttemptId": "appattempt_1795220280127_0031_000001",
    "logAggregationStatus": "RUNNING",
}
CAPACITY: dict[str, Any] = {
    "type": "capacityScheduler",
    "capacity": 100.0,
    "usedCapacity": 12.5,
    "maxCapacity": 100.0,
    "queueName": "root",
    "queuePath": "root",
    "maximumAllocation": {"memory": 8192, "vCores": 8},
    "queueType": "parent",
    "autoCreationEligibility": "off",
    "queues": {
        "queue": [
            {
                "type": "capacitySchedulerLeafQueueInfo",
                "queueName": "default",
                "queuePath": "root.default",
                "capacity": 80.0,
                "absoluteCapacity": 80.0,
                "absoluteMaxCapacity": 100.0,
                "absoluteUsedCapacity": 10.0,
                "usedCapacity": 12.5,
                "state": "RUNNING",
                "pendingContainers": 2,
                "queueType": "leaf",
                "maximumAllocation": {"memory": 4096, "vCores": 4},
            },
            {
                "queueName": "teams",
                "queuePath": "root.teams",
                "absoluteCapacity": 20.0,
                "absoluteMaxCapacity": 20.0,
                "absoluteUsedCapacity": 0.0,
                "state": "STOPPED",
                "queueType": "parent",
                "autoCreationEligibility": "flexible",
            },
        ]
    },
}
FAIR: dict[str, Any] = {
    "type": "fairScheduler",
    "rootQueue": {
        "queueName": "root",
        "clusterResources": {"memory": 16000, "vCores": 16},
        "maxResources": {"memory": 16000},
        "steadyFairResources": {"memory": 16000},
        "usedResources": {"memory": 4000},
        "childQueues": {
            "queue": [
                {
                    "queueName": "root.users",
                    "maxResources": {"memory": 8000},
                    "steadyFairResources": {"memory": 4000},
                    "usedResources": {"memory": 4000},
                    "maxContainerAllocation": {"memory": 2000, "vCores": 2},
                    "pendingContainers": 1,
                }
            ]
        },
    },
}


@pytest.fixture
def manager() -> Iterator[FakeDaemon]:
    with daemon() as fake:
        yield fake


@pytest.fixture
def rest(manager: FakeDaemon) -> Iterator[ResourceManagerRest]:
    client = ResourceManagerRest([manager.address], "ada")
    yield client
    client.close()


def test_an_application(manager: FakeDaemon, rest: ResourceManagerRest) -> None:
    manager.answers[f"/ws/v1/cluster/apps/{APP}"] = {"app": RUNNING}
    found = rest.application(APP)
    assert found.state is ApplicationState.RUNNING
    assert found.final_status is FinalStatus.UNDEFINED
    assert found.tags == ("yarnflow", "yarnflow-0123")
    assert found.progress == pytest.approx(0.1)
    assert (found.started_ms, found.finished_ms) == (1795220555714, -1)
    assert (found.running_containers, found.master_node) == (3, "localhost:22085")
    assert found.collecting_logs is True
    assert manager.asked[0][2] == {"user.name": "ada"}


def test_counts_of_an_ended_application_are_not_negative(
    manager: FakeDaemon, rest: ResourceManagerRest
) -> None:
    ended = {**RUNNING, "state": "FINISHED", "finalStatus": "FAILED"}
    ended |= {"runningContainers": -1, "diagnostics": "x\n", "logAggregationStatus": "SUCCEEDED"}
    manager.answers[f"/ws/v1/cluster/apps/{APP}"] = {"app": ended}
    found = rest.application(APP)
    assert (found.running_containers, found.diagnostics, found.final_status) == (0, "x", FinalStatus.FAILED)
    assert found.collecting_logs is False
    del ended["logAggregationStatus"]
    assert rest.application(APP).collecting_logs is None


def test_applications_by_tag_user_and_state(manager: FakeDaemon, rest: ResourceManagerRest) -> None:
    older = {**RUNNING, "id": "application_1_0009", "startedTime": 5}
    manager.answers["/ws/v1/cluster/apps"] = {"apps": {"app": [RUNNING, older]}}
    states = [ApplicationState.RUNNING, ApplicationState.NEW]
    found = rest.applications(tag="yarnflow", user="bob", states=states)
    assert [application.application_id for application in found] == ["application_1_0009", APP]
    assert manager.asked[0][2] == {
        "applicationTags": "yarnflow",
        "user": "bob",
        "states": "RUNNING,NEW",
        "user.name": "ada",
    }


@pytest.mark.parametrize("nothing", [None, {}, {"app": []}])
def test_no_applications(manager: FakeDaemon, rest: ResourceManagerRest, nothing: Any) -> None:
    manager.answers["/ws/v1/cluster/apps"] = {"apps": nothing}
    assert rest.applications() == []


@pytest.mark.parametrize("name", ["application_1_0002", "nonsense", "../../ws", ""])
def test_an_application_yarn_does_not_know(rest: ResourceManagerRest, name: str) -> None:
    with pytest.raises(ApplicationNotFound):
        rest.application(name)


def test_ids_of_other_things_are_not_sent(manager: FakeDaemon, rest: ResourceManagerRest) -> None:
    with pytest.raises(ApplicationNotFound, match="application_1700000000000_0001"):
        rest.kill("container_1_2")
    assert manager.asked == []


def test_live_containers_of_the_newest_attempt(manager: FakeDaemon, rest: ResourceManagerRest) -> None:
    base = f"/ws/v1/cluster/apps/{APP}/appattempts"
    manager.answers[base] = {
        "appAttempts": {
            "appAttempt": [
                {"id": 1, "appAttemptId": "appattempt_1"},
                {"id": 2, "appAttemptId": "appattempt_2"},
            ]
        }
    }
    manager.answers[f"{base}/appattempt_2/containers"] = {
        "container": [
            {
                "containerId": "container_1_02_000001",
                "allocatedMB": 768,
                "containerState": "RUNNING",
                "nodeHttpAddress": "http://node1:8042",
                "startedTime": 7,
            },
            {"containerId": "c2", "containerState": "COMPLETE", "containerExitStatus": -104},
        ]
    }
    first, second = rest.containers(APP)
    assert (first.node, first.memory_mib, first.exit_status, first.started_ms) == ("node1:8042", 768, None, 7)
    assert (second.exit_status, second.started_ms) == (-104, -1)


def test_an_application_without_attempts_has_no_containers(
    manager: FakeDaemon, rest: ResourceManagerRest
) -> None:
    manager.answers[f"/ws/v1/cluster/apps/{APP}/appattempts"] = {"appAttempts": None}
    assert rest.containers(APP) == []


def test_queues_of_the_capacity_scheduler(manager: FakeDaemon, rest: ResourceManagerRest) -> None:
    manager.answers["/ws/v1/cluster/scheduler"] = {"scheduler": {"schedulerInfo": CAPACITY}}
    root, default, teams = rest.queues()
    assert (root.path, root.leaf, root.creates_children) == ("root", False, False)
    assert default == Queue("default", "root.default", "RUNNING", 80.0, 100.0, 10.0, 2, True, 4096, 4)
    assert (teams.state, teams.leaf, teams.creates_children) == ("STOPPED", False, True)


def test_queues_of_the_fair_scheduler(manager: FakeDaemon, rest: ResourceManagerRest) -> None:
    manager.answers["/ws/v1/cluster/scheduler"] = {"scheduler": {"schedulerInfo": FAIR}}
    root, users = rest.queues()
    assert (root.path, root.leaf, root.used_percent) == ("root", False, 25.0)
    assert users == Queue("users", "root.users", "RUNNING", 25.0, 50.0, 25.0, 1, True, 2000, 2, True)


def test_the_queue_of_the_fifo_scheduler(manager: FakeDaemon, rest: ResourceManagerRest) -> None:
    info = {"type": "fifoScheduler", "usedCapacity": 0.5, "qstate": "RUNNING"}
    manager.answers["/ws/v1/cluster/scheduler"] = {"scheduler": {"schedulerInfo": info}}
    (queue,) = rest.queues()
    assert (queue.name, queue.used_percent, queue.leaf) == ("default", 50.0, True)


def _cluster(manager: FakeDaemon, nodes: Any) -> None:
    manager.answers["/ws/v1/cluster/scheduler"] = {"scheduler": {"schedulerInfo": CAPACITY}}
    metrics = {"totalMB": 16384, "availableMB": 1000, "totalVirtualCores": 16, "availableVirtualCores": 3}
    manager.answers["/ws/v1/cluster/metrics"] = {"clusterMetrics": {**metrics, "activeNodes": 2}}
    manager.answers["/ws/v1/cluster/nodes"] = {"nodes": nodes}


def test_no_container_is_larger_than_the_largest_node(manager: FakeDaemon, rest: ResourceManagerRest) -> None:
    small = {"usedMemoryMB": 1000, "availMemoryMB": 3000, "usedVirtualCores": 4, "availableVirtualCores": 8}
    _cluster(manager, {"node": [small, {**small, "availMemoryMB": 2000}]})
    limits = rest.limits()
    assert (limits.max_memory_mib, limits.max_vcores) == (4000, 8)
    assert (limits.total_memory_mib, limits.available_memory_mib, limits.active_nodes) == (16384, 1000, 2)


def test_without_nodes_the_schedulers_maximum_holds(manager: FakeDaemon, rest: ResourceManagerRest) -> None:
    _cluster(manager, None)
    assert (rest.limits().max_memory_mib, rest.limits().max_vcores) == (8192, 8)


def test_kill_and_priority(manager: FakeDaemon, rest: ResourceManagerRest) -> None:
    manager.answers[f"/ws/v1/cluster/apps/{APP}/state"] = Answer({"state": "KILLING"}, 202)
    manager.answers[f"/ws/v1/cluster/apps/{APP}/priority"] = {"priority": 3}
    rest.kill(APP)
    rest.set_priority(APP, 3)
    assert [(method, body) for method, _, _, body in manager.asked] == [
        ("PUT", {"state": "KILLED"}),
        ("PUT", {"priority": 3}),
    ]


def test_what_one_may_not_do_says_whom_to_ask(manager: FakeDaemon, rest: ResourceManagerRest) -> None:
    denied = {"RemoteException": {"message": "java.lang.Exception: User ada cannot kill it\n at x"}}
    manager.answers[f"/ws/v1/cluster/apps/{APP}/state"] = Answer(denied, 403)
    with pytest.raises(YarnError, match="User ada cannot kill it.*yarn.modify.acls") as raised:
        rest.kill(APP)
    assert "\n" not in str(raised.value)


def test_nobody_there_says_where_and_what_to_do() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        rest = ResourceManagerRest([f"127.0.0.1:{port}"], "ada")
        with pytest.raises(YarnUnavailable, match=f"127.0.0.1:{port}: connection refused.*HADOOP_CONF_DIR"):
            rest.queues()
        rest.close()


def test_the_active_of_two_is_asked_and_remembered(manager: FakeDaemon) -> None:
    manager.answers[f"/ws/v1/cluster/apps/{APP}"] = {"app": RUNNING}
    with daemon() as standby:
        text = "This is standby RM. The redirect url is: /ws"
        standby.answers[f"/ws/v1/cluster/apps/{APP}"] = Answer(text, 200, {"Refresh": "3; url=/"})
        rest = ResourceManagerRest([standby.address, f"http://{manager.address}/"], "ada")
        rest.application(APP)
        rest.application(APP)
        rest.close()
        assert (len(standby.asked), len(manager.asked)) == (1, 2)


def test_a_standby_that_redirects_is_followed(manager: FakeDaemon) -> None:
    manager.answers[f"/ws/v1/cluster/apps/{APP}/state"] = Answer({"state": "KILLED"})
    with daemon() as standby:
        target = f"http://{manager.address}/ws/v1/cluster/apps/{APP}/state"
        standby.answers[f"/ws/v1/cluster/apps/{APP}/state"] = Answer("", 307, {"Location": target})
        rest = ResourceManagerRest([standby.address], "ada")
        rest.kill(APP)
        rest.close()
    assert manager.asked[-1][0] == "PUT"


def test_only_standbys_is_unavailable(manager: FakeDaemon, rest: ResourceManagerRest) -> None:
    manager.answers["/ws/v1/cluster/metrics"] = Answer("<html>There is no active RM right now.</html>", 503)
    with pytest.raises(YarnUnavailable, match="no active RM"):
        rest.limits()
