"""Every method of every gateway over a real loopback connection."""

from __future__ import annotations

import inspect
import socket
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

from tests.patience import PATIENCE
from tests.rpc.conftest import FENCE, Cluster
from tests.rpc.samples import sample
from yarnflow.core import ports
from yarnflow.core.ids import JobId
from yarnflow.core.job.context import current_job
from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.errors import (
    ERRORS_BY_CODE,
    JobNotFound,
    RemoteError,
    RpcTimeout,
    RpcUnavailable,
    StaleEpoch,
    UserCodeError,
    YarnflowError,
)
from yarnflow.rpc.member import Role
from yarnflow.rpc.methods import ENDPOINTS, methods_of

CASES = [(service, method) for service in ENDPOINTS for method in methods_of(service)]
LEADER = LeaderInfo(FENCE, "127.0.0.1:1", "1.0", "default")


def gateway_of(cluster: Cluster, service: str) -> Any:
    factory = cluster.factory()
    cluster.recorders["Dispatcher"].answers.setdefault("leader", LEADER)
    cluster.become({"TaskExecutor": Role.TASK_MANAGER, "Driver": Role.DRIVER}.get(service, Role.JOB_MANAGER))
    gateways: dict[str, Callable[[], object]] = {
        "Dispatcher": lambda: factory.dispatcher(cluster.address),
        "ResourceManager": lambda: factory.resource_manager(cluster.address, FENCE),
        "JobMaster": lambda: factory.job_master(cluster.address, FENCE),
        "TaskExecutor": lambda: factory.task_executor(cluster.address),
        "Driver": lambda: factory.driver(cluster.address),
        "Master": lambda: factory.master(cluster.address),
    }
    return gateways[service]()


@pytest.mark.parametrize(("service", "method"), CASES, ids=lambda text: text)
def test_method_carries_its_arguments_and_its_answer(cluster: Cluster, service: str, method: str) -> None:
    gateway = gateway_of(cluster, service)
    function = getattr(getattr(ports, f"{service}Gateway"), method)
    hints = get_type_hints(function)
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    arguments = tuple(sample(hints[name], index) for index, name in enumerate(names, 1))
    answer = sample(hints["return"])
    cluster.recorders[service].answers[method] = answer

    assert getattr(gateway, method)(*arguments) == answer
    assert cluster.recorders[service].calls[-1] == (method, arguments)


@pytest.mark.parametrize("code", sorted(ERRORS_BY_CODE))
def test_every_error_arrives_as_its_own_class(cluster: Cluster, code: str) -> None:
    cls = ERRORS_BY_CODE[code]
    cluster.recorders["Driver"].answers["cancel"] = cls("job ä: what, where, next")
    with pytest.raises(YarnflowError) as caught:
        gateway_of(cluster, "Driver").cancel()
    assert type(caught.value) is cls
    assert caught.value.message == "job ä: what, where, next"


def test_a_dispatcher_may_be_given_less_time_than_others(cluster: Cluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hangs:
        gateway = cluster.factory(timeout_ms=60_000).dispatcher(f"127.0.0.1:{hangs.getsockname()[1]}", 20)
        with pytest.raises(RpcTimeout, match="within 20 ms"):
            gateway.leader()


def test_user_traceback_arrives(cluster: Cluster) -> None:
    cluster.recorders["Driver"].answers["deploy"] = UserCodeError("boom", "Traceback…\n  line 3")
    with pytest.raises(UserCodeError) as caught:
        gateway_of(cluster, "Driver").deploy(sample(get_type_hints(ports.DriverGateway.deploy)["deployment"]))
    assert caught.value.traceback_text == "Traceback…\n  line 3"


def test_error_of_a_newer_version_becomes_a_remote_error(cluster: Cluster) -> None:
    class FromTheFuture(YarnflowError):
        code = "FROM_THE_FUTURE"

    cluster.recorders["Driver"].answers["cancel"] = FromTheFuture("new")
    with pytest.raises(RemoteError, match="FROM_THE_FUTURE: new"):
        gateway_of(cluster, "Driver").cancel()


def test_error_with_text_that_is_no_unicode_still_arrives(cluster: Cluster) -> None:
    cluster.recorders["Driver"].answers["cancel"] = JobNotFound("file \udc80.csv")
    with pytest.raises(JobNotFound, match=r"file \?.csv"):
        gateway_of(cluster, "Driver").cancel()


def test_arguments_may_be_named_as_the_protocol_names_them(cluster: Cluster) -> None:
    gateway = gateway_of(cluster, "ResourceManager")
    gateway.disconnect_task_manager(reason="over", task_manager_id="tm-1")
    gateway.disconnect_task_manager("tm-2", reason="over")
    assert [arguments for _, arguments in cluster.recorders["ResourceManager"].calls] == [
        ("tm-1", "over"),
        ("tm-2", "over"),
    ]
    with pytest.raises(TypeError, match="unexpected keyword argument 'why'"):
        gateway.disconnect_task_manager("tm-1", "over", why="over")
    with pytest.raises(TypeError, match="missing a required argument: 'reason'"):
        gateway.disconnect_task_manager("tm-1")


def test_dispatcher_asks_for_the_leader_once_and_carries_its_fence(cluster: Cluster) -> None:
    recorder = cluster.recorders["Dispatcher"]
    recorder.answers["list_jobs"] = ()
    gateway = gateway_of(cluster, "Dispatcher")
    gateway.list_jobs()
    gateway.list_jobs()
    assert [name for name, _ in recorder.calls] == ["leader", "list_jobs", "list_jobs"]


def test_dispatcher_looks_the_leader_up_again_when_it_changed(cluster: Cluster) -> None:
    recorder = cluster.recorders["Dispatcher"]
    recorder.answers["list_jobs"] = ()
    gateway = gateway_of(cluster, "Dispatcher")
    gateway.list_jobs()
    cluster.fence = Fence("leader-2", 6)
    recorder.answers["leader"] = LeaderInfo(cluster.fence, "127.0.0.1:1", "1.0", "default")
    gateway.list_jobs()
    assert [name for name, _ in recorder.calls] == ["leader", "list_jobs", "leader", "list_jobs"]


def test_dispatcher_looks_up_only_once_more(cluster: Cluster) -> None:
    recorder = cluster.recorders["Dispatcher"]
    gateway = gateway_of(cluster, "Dispatcher")
    cluster.fence = Fence("leader-2", 6)
    with pytest.raises(StaleEpoch, match="leader-1 .epoch 5. for leader, here it is leader-2 .epoch 6."):
        gateway.list_jobs()
    assert [name for name, _ in recorder.calls] == ["leader", "leader"]


def test_factory_shares_connections_and_reads_its_fence_at_each_call(cluster: Cluster) -> None:
    factory = cluster.factory(identity="jm")
    first, second = factory.driver(cluster.address), factory.driver(cluster.address)
    first.ping()
    second.ping()
    factory.fence = lambda: Fence("leader-1", 4)
    with pytest.raises(StaleEpoch):
        first.ping()
    factory.close()
    assert cluster.someone_gone.wait(PATIENCE.thread_s)
    assert cluster.gone == ["jm"]


def test_closed_factory_opens_nothing(cluster: Cluster) -> None:
    factory = cluster.factory()
    gateway = factory.driver(cluster.address)
    gateway.ping()
    factory.close()
    with pytest.raises(RpcUnavailable, match="shutting down"):
        gateway.ping()
    with pytest.raises(RpcUnavailable, match="shutting down"):
        factory.dispatcher(cluster.address).leader()


def test_nobody_there_leaves_nothing_behind(cluster: Cluster) -> None:
    factory = cluster.factory()
    gateway = factory.driver(cluster.address)
    gateway.ping()
    assert factory.addresses == [cluster.address]
    cluster.server.stop()
    with pytest.raises(RpcUnavailable):
        gateway.ping()
    assert factory.addresses == []


def test_clients_of_processes_that_ended_go(make_cluster: Callable[..., Cluster]) -> None:
    alive = make_cluster()
    factory = alive.factory()
    lasting = factory.driver(alive.address)
    lasting.ping()
    drivers = []
    for _ in range(40):
        ended = make_cluster()
        drivers.append(factory.driver(ended.address))
        drivers[-1].ping()
        ended.server.stop()
    assert alive.address in factory.addresses
    assert len(factory.addresses) <= 17
    lasting.ping()
    with pytest.raises(RpcUnavailable, match="nobody listens"):
        drivers[0].ping()


def test_client_in_use_is_not_let_go(make_cluster: Callable[..., Cluster]) -> None:
    factory = make_cluster().factory()
    clusters = [make_cluster() for _ in range(18)]
    with factory.borrow(Role.DRIVER, clusters[0].address) as client:  # a call that has not connected yet
        for other in clusters[1:]:
            factory.driver(other.address).ping()
        client.call(methods_of("Driver")["ping"], (), fence=FENCE)
    assert clusters[0].recorders["Driver"].calls == [("ping", ())]
    assert len(factory.addresses) == 18


def test_unknown_job_is_one_line(cluster: Cluster) -> None:
    cluster.recorders["Dispatcher"].answers["job_details"] = JobNotFound("no job abc; try yarnflow list")
    with pytest.raises(JobNotFound, match="no job abc"):
        gateway_of(cluster, "Dispatcher").job_details(JobId("abc"))


def test_a_call_about_a_job_works_for_it(cluster: Cluster) -> None:
    """So lines of logs name the job."""
    found: list[str] = []

    def answer(*_arguments: object) -> list[object]:
        found.append(current_job())
        return []

    for method in ("cancel_job", "list_jobs"):
        cluster.recorders["Dispatcher"].answers[method] = answer
    gateway = gateway_of(cluster, "Dispatcher")
    gateway.list_jobs()
    gateway.cancel_job(JobId("ab" * 16))
    gateway.list_jobs()
    assert found == ["", "ab" * 16, ""]
