"""A whole JobManager in this process; only drivers and TaskManagers are missing."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.patience import PATIENCE
from yarnflow.config.configuration import Configuration
from yarnflow.core.cluster_result import ClusterResult
from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.ids import DriverId, JobId, TaskManagerId, VertexId
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.core.messages import (
    DriverAssignment,
    Fence,
    JobSubmission,
    ProgramKind,
    TaskManagerRegistration,
)
from yarnflow.core.ports import DispatcherGateway
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import DeploymentMode
from yarnflow.entrypoint.master import job_manager as master_module
from yarnflow.entrypoint.master import lifetime
from yarnflow.entrypoint.master import main as jobmanager
from yarnflow.entrypoint.master.job_manager import JobManager
from yarnflow.errors import (
    ConfigError,
    DriverLost,
    JobError,
    LeadershipLost,
    ResourceError,
    RpcProtocolError,
    StaleEpoch,
    ZooKeeperUnavailable,
)
from yarnflow.graph.codec import job_graph_to_json
from yarnflow.graph.job_graph import JobGraph, JobVertex
from yarnflow.process.channel.messages import JobStatusReport, MasterRole, Request
from yarnflow.process.clock import SystemClock
from yarnflow.process.no_workers import NoResourceProvider
from yarnflow.rest.access.tokens import Access, token
from yarnflow.rpc.gateways import ThriftGatewayFactory
from yarnflow.rpc.member import Member, Role
from yarnflow.runtime.dispatcher import job_board
from yarnflow.testing.driver_launcher import FakeDriverLauncher
from yarnflow.testing.ha.services import FakeHaCluster, FakeHaServices

T = TypeVar("T")
SECRET = b"0123456789abcdef0123456789abcdef"
JOB, OTHER = JobId("a" * 32), JobId("b" * 32)


def submission(job_id: JobId = JOB) -> JobSubmission:
    vertices = (JobVertex(VertexId("v1"), "source", (1,), 1, 128, "default"),)
    graph = JobGraph(job_id, "flights", ProgramKind.GRAPH, vertices=vertices)
    return JobSubmission(job_id, "flights", ProgramKind.GRAPH, job_graph_to_json(graph), {})


class Cluster:
    """One JobManager, running in a thread."""

    def __init__(
        self,
        path: Path,
        mode: DeploymentMode | None,
        ha: FakeHaServices | None = None,
        **options: str,
    ) -> None:
        path.mkdir(exist_ok=True)
        self.ha = ha or FakeHaServices()
        self.said: list[MasterRole] = []
        self.path = path
        self.launcher = FakeDriverLauncher()
        self.statuses: list[tuple[str, str]] = []
        #: with which the process would have ended
        self.exits: list[int] = []
        self.job_manager = JobManager(
            Configuration.from_dict({"jobmanager.rpc.port": "0", "rest.port": "-1", **options}, "test"),
            path,
            SECRET,
            self.launcher,
            NoResourceProvider(),
            self.ha,
            ask_supervisor=self._asked,
            mode=mode,
            end_process=self.exits.append,
        )
        self.factory = ThriftGatewayFactory(Member(Role.CLIENT, SECRET), "client", 10_000, 1 << 26)
        self.thread: threading.Thread | None = None

    def _asked(self, request: Request) -> None:
        match request:
            case JobStatusReport():
                self.statuses.append((request.status.name, request.diagnostics))
            case MasterRole():
                self.said.append(request)

    def grant(self, epoch: int) -> None:
        """It leads; returns when it serves."""
        candidacy = self.ha.candidacy
        assert candidacy is not None
        until(lambda: candidacy.contender)
        candidacy.grant(epoch)
        until(lambda: any(role.epoch == epoch for role in self.said) or None)

    def start(self, job: JobSubmission | None = None) -> dict[str, Any]:
        """Run it; returns the content of ``jobmanager.json``."""
        self.thread = threading.Thread(target=self.job_manager.run, args=(job,), daemon=True)
        self.thread.start()
        file = self.path / "jobmanager.json"
        return until(lambda: json.loads(file.read_text()) if file.exists() else None)

    def gateway(self, address: str) -> DispatcherGateway:
        return self.factory.dispatcher(address)

    def result(self) -> ClusterResult:
        """How it ended by itself."""
        assert self.thread is not None
        self.thread.join(PATIENCE.thread_s)
        assert not self.thread.is_alive()
        return from_json(ClusterResult, (self.path / "result.json").read_text())

    def close(self) -> None:
        self.job_manager.ended.set()
        if self.thread is not None:
            self.thread.join(PATIENCE.thread_s)
        self.factory.close()


def until(found: Callable[[], T | None]) -> T:
    pause = threading.Event()
    for _ in range(3_000):
        value = found()
        if value is not None:
            return value
        pause.wait(0.01)
    raise AssertionError("it did not come")


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Cluster]]:
    monkeypatch.setattr(lifetime, "ARRIVAL_MS", 0)
    made: list[Cluster] = []

    def make(
        mode: DeploymentMode | None, ha: FakeHaServices | None = None, **options: str
    ) -> Cluster:
        path = tmp_path if ha is None else tmp_path / f"master-{len(made)}"
        made.append(Cluster(path, mode, ha, **options))
        return made[-1]

    yield make
    for cluster in made:
        cluster.close()


def test_a_cluster_for_one_job_ends_with_it(start: Callable[..., Cluster]) -> None:
    """1. the job is there without a client  2. no other is taken  3. canceled, and the client sees it
    4. the JobManager ends by itself and says how."""
    cluster = start(DeploymentMode.PER_JOB)
    gateway = cluster.gateway(cluster.start(submission())["address"])
    # without any client's doing
    until(lambda: cluster.launcher.assignments or None)
    with pytest.raises(JobError, match="runs job flights"):
        gateway.submit_job(submission(OTHER))
    details = gateway.await_job_change(JOB, -1, 10_000)
    gateway.cancel_job(JOB)
    while not details.overview.status.globally_terminal:
        details = gateway.await_job_change(JOB, details.version, 10_000)
    assert details.overview.status is JobStatus.CANCELED
    result = cluster.result()
    assert (result.status, result.job_id) == (JobStatus.CANCELED, JOB)
    assert result.details is not None and result.details.overview.name == "flights"
    assert [status for status, _ in cluster.statuses] == [
        "INITIALIZING", "CREATED", "CANCELLING", "CANCELED"
    ]  # fmt: skip
    assert cluster.statuses[-1][1] == f"job flights ({JOB}) was canceled"


def test_a_job_that_cannot_be_is_said_in_the_result(start: Callable[..., Cluster]) -> None:
    cluster = start(DeploymentMode.PER_JOB)
    broken = JobSubmission(JOB, "flights", ProgramKind.GRAPH, "{", {})
    cluster.start(broken)
    result = cluster.result()
    assert result.status is JobStatus.FAILED and result.diagnostics


def test_a_cluster_for_a_program_ends_with_it(start: Callable[..., Cluster]) -> None:
    cluster = start(DeploymentMode.APPLICATION)
    gateway = cluster.gateway(cluster.start()["address"])
    gateway.submit_job(submission())
    cluster.job_manager.program_ended(0, "")
    with pytest.raises(JobError, match="program of this cluster has ended"):
        until(lambda: gateway.submit_job(submission(OTHER)) and None)
    gateway.cancel_job(JOB)
    assert cluster.result().status is JobStatus.CANCELED


def test_the_web_page(start: Callable[..., Cluster]) -> None:
    cluster = start(None, **{"rest.port": "0"})
    published = cluster.start()
    address = published["web_address"]
    assert address.startswith("http://localhost:")
    connection = HTTPConnection("127.0.0.1", int(address.rpartition(":")[2]), timeout=PATIENCE.answer_s)
    connection.request("GET", "/taskmanagers")
    assert json.load(connection.getresponse()) == {"taskmanagers": []}
    before_ms = int(time.time() * 1000)
    fence = Fence(published["leader_id"], published["epoch"])
    cluster.factory.resource_manager(published["address"], fence).register_task_manager(
        TaskManagerRegistration(TaskManagerId("tm-1"), "h:1", "h", 1, 4)
    )
    connection.request("GET", "/taskmanagers")
    (made,) = json.load(connection.getresponse())["taskmanagers"]
    assert (made["id"], made["slotsNumber"], made["freeSlots"]) == ("tm-1", 4, 4)
    assert made["timeSinceLastHeartbeat"] >= before_ms - 1_000, "not a time of this clock"
    connection.close()


def test_no_web_page_unless_wanted(start: Callable[..., Cluster]) -> None:
    assert start(None).start()["web_address"] == ""


def test_a_single_master_that_is_told_to_end_has_done_its_work(start: Callable[..., Cluster]) -> None:
    """Else its supervisor takes it for one that has failed."""
    cluster = start(None)
    cluster.gateway(cluster.start()["address"]).shut_down_cluster()
    assert cluster.result() == ClusterResult(JobStatus.FINISHED)


def test_who_follows_a_job_sees_its_end_before_a_local_cluster_ends(
    start: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifetime, "LAST_LOOK_MS", 600_000)
    monkeypatch.setattr(job_board, "FOLLOWER_PATIENCE_MS", 600_000)
    cluster = start(None)
    gateway = cluster.gateway(str(cluster.start()["address"]))
    gateway.submit_job(submission())
    seen = gateway.await_job_change(JOB, -1, 0)
    gateway.cancel_job(JOB)
    until(lambda: gateway.list_jobs()[0].status is JobStatus.CANCELED or None)
    cluster.job_manager.ended.set()
    assert cluster.thread is not None
    cluster.thread.join(0.2)
    last = gateway.await_job_change(JOB, seen.version, 0)
    assert last.overview.status is JobStatus.CANCELED
    cluster.thread.join(PATIENCE.thread_s)
    assert not cluster.thread.is_alive()


def test_a_single_master_tells_its_supervisor_that_it_leads_and_never_stands_by(
    start: Callable[..., Cluster],
) -> None:
    cluster = start(None)
    published = cluster.start()
    until(lambda: cluster.said or None)
    assert published["epoch"] == 1
    assert [(role.leads, role.address, role.leader_id, role.epoch) for role in cluster.said] == [
        (True, published["address"], published["leader_id"], 1)
    ]


def test_the_file_of_a_submission(tmp_path: Path) -> None:
    file = tmp_path / "submission.json"
    file.write_text(to_json(submission()))
    assert jobmanager.read_submission(file) == submission()
    file.write_text("{}")
    with pytest.raises(RpcProtocolError):
        jobmanager.read_submission(file)
    with pytest.raises(ConfigError, match="missing.json cannot be read"):
        jobmanager.read_submission(tmp_path / "missing.json")


@pytest.mark.parametrize(
    "arguments", [("--mode", "yarn-per-job"), ("--mode", "yarn-session", "--submission", "f")]
)
def test_a_submission_goes_with_one_mode(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        jobmanager.main(["--cluster-dir", "c", "--conf-json", "f", "--channel-fd", "9", *arguments])


# --- several masters ---


def test_a_standby_leads_to_the_leader(start: Callable[..., Cluster]) -> None:
    shared = FakeHaCluster()
    first, second = (start(None, FakeHaServices(shared), **{"rest.port": "0"}) for _ in range(2))
    addresses = [first.start(), second.start()]
    gateway = second.gateway(addresses[1]["address"])
    with pytest.raises(LeadershipLost, match="no master leads"):
        gateway.leader()
    first.grant(3)
    assert gateway.leader().address == addresses[0]["address"]
    with pytest.raises(LeadershipLost, match=f"standby; the leader is at {addresses[0]['address']}"):
        gateway.list_jobs()
    connection = HTTPConnection(
        "127.0.0.1", int(addresses[1]["web_address"].rpartition(":")[2]), timeout=PATIENCE.answer_s
    )
    # the exception of the leader's own machine is not that of its standbys
    connection.request("GET", "/jobs?x=1")
    refused = connection.getresponse()
    assert (refused.status, refused.read()[:10]) == (401, b'{"errors":')
    sent = {"Authorization": f"Bearer {token(SECRET, Access.READ)}"}
    connection.request("GET", "/jobs?x=1", headers=sent)
    answer = connection.getresponse()
    assert (answer.status, json.load(answer)) == (200, {"jobs": []}), "the leader's answer"
    assert first.ha.candidacy is not None
    first.ha.candidacy.tell_masters()
    connection.request("GET", "/jobmanager/leadership", headers=sent)
    told = json.load(connection.getresponse())
    leader, (standby,) = told["leader"], told["standbys"]
    assert (leader["address"], leader["epoch"]) == (addresses[0]["address"], 3)
    assert (standby["address"], standby["web-address"]) == (
        addresses[1]["address"],
        addresses[1]["web_address"],
    )
    connection.close()
    assert first.gateway(addresses[0]["address"]).leader().fence.epoch == 3
    assert [role.leads for role in first.said] == [False, True]
    assert json.loads((first.path / "jobmanager.json").read_text())["epoch"] == 3


def test_a_standby_keeps_a_driver_for_the_leader(start: Callable[..., Cluster]) -> None:
    shared = FakeHaCluster()
    first, second = start(None, FakeHaServices(shared)), start(None, FakeHaServices(shared))
    leader = first.start()
    address = second.start()["address"]
    fence = Fence("leader-1", 1)
    assignment = DriverAssignment(
        *(JOB, DriverId("driver-1"), leader["address"], fence, "hdfs:///c", "/elsewhere"),
        hot_spare_of=DriverId("driver-0"),
    )
    second.factory.fence = lambda: fence
    with pytest.raises(StaleEpoch, match="nobody"):
        second.factory.master(address).host_driver(assignment, 1000)
    first.grant(1)
    second.factory.master(address).host_driver(assignment, 1000)
    (kept,) = second.launcher.assignments
    assert kept.work_dir == str(second.path / "jobs" / JOB), "a directory of another machine is of no use"
    assert replace(kept, work_dir="/elsewhere") == assignment
    beside = replace(assignment, driver_id=DriverId("driver-2"), hot_spare_of=kept.driver_id)
    with pytest.raises(ResourceError, match="driver-1 itself"):
        second.factory.master(address).host_driver(beside, 1000)
    second.factory.fence = lambda: Fence("deposed", 7)
    with pytest.raises(StaleEpoch):
        second.factory.master(address).host_driver(assignment, 1000)


def test_drivers_with_containers_of_their_own(start: Callable[..., Cluster]) -> None:
    """1. the standby has the job's driver 2. its end is told to the job 3. the next leader hears it itself"""
    shared, options = FakeHaCluster(), {"driver.placement": "container"}
    first, second = (start(DeploymentMode.SESSION, FakeHaServices(shared), **options) for _ in range(2))
    gateway = first.gateway(first.start()["address"])
    address = second.start()["address"]
    first.grant(1)
    assert first.ha.candidacy is not None
    first.ha.candidacy.tell_masters()
    gateway.submit_job(submission())
    lost = until(lambda: second.launcher.assignments or None)[0]
    second.launcher.end(lost.driver_id, -100, "on a lost node")
    until(lambda: len(second.launcher.assignments) == 2 or None)
    (failure,) = gateway.job_details(JOB).failures
    assert failure.error.code == DriverLost.code and "on a lost node" in failure.error.message
    assert not first.launcher.assignments
    unheard = second.launcher.assignments[1].driver_id
    shared.election.retrieval.set_leader(None)
    second.launcher.end(unheard, -9)
    first.close()
    second.grant(2)
    until(lambda: len(second.launcher.assignments) == 3 or None)
    second.launcher.end(second.launcher.assignments[2].driver_id, -9)
    details = second.gateway(address).await_job_change(JOB, -1, 10_000)
    while len(details.failures) < 1:
        details = second.gateway(address).await_job_change(JOB, details.version, 10_000)
    own = second.launcher.assignments[2].driver_id
    assert own in details.failures[0].error.message, "told by its own supervisor"


def test_the_request_for_a_container_is_withdrawn_with_its_job(start: Callable[..., Cluster]) -> None:
    """It waits at a standby, and has no lease by which the standby would hear of it."""
    shared, options = FakeHaCluster(), {"driver.placement": "container", "heartbeat.interval": "20 ms"}
    first, second = (start(DeploymentMode.SESSION, FakeHaServices(shared), **options) for _ in range(2))
    gateway = first.gateway(first.start()["address"])
    second.start()
    first.grant(1)
    assert first.ha.candidacy is not None
    first.ha.candidacy.tell_masters()
    gateway.submit_job(submission())
    driver = until(lambda: second.launcher.assignments or None)[0]
    second.launcher.on_kill = lambda driver_id: second.launcher.end(driver_id, -9)
    second.launcher.wait(driver.driver_id)
    gateway.cancel_job(JOB)
    until(lambda: driver.driver_id in second.launcher.killed or None)


def test_jobs_survive_their_master(start: Callable[..., Cluster]) -> None:
    """1. accepted by the first 2. that one goes 3. the second has it, with a newer version"""
    shared = FakeHaCluster()
    first, second = start(None, FakeHaServices(shared)), start(None, FakeHaServices(shared))
    gateway = first.gateway(first.start()["address"])
    address = second.start()["address"]
    first.grant(1)
    gateway.submit_job(submission())
    before = gateway.await_job_change(JOB, 0, 10_000)
    first.close()
    second.grant(2)
    after = second.gateway(address).await_job_change(JOB, before.version, 10_000)
    assert after.version > before.version
    assert second.gateway(address).submit_job(submission()).job_id == JOB
    assert len(second.gateway(address).list_jobs()) == 1


def test_what_zookeeper_does_not_do_is_tried_again(
    start: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(master_module, "_RETRY_S", 0.0)
    shared = FakeHaCluster()
    master = start(None, FakeHaServices(shared))
    master.start()
    failures = shared.stores.graphs.read_failures
    failures += [ZooKeeperUnavailable("away"), ZooKeeperUnavailable("still away")]
    master.grant(1)
    assert not failures and not master.job_manager.ended.is_set()


def test_a_deposed_master_ends_at_once(start: Callable[..., Cluster]) -> None:
    master = start(None, FakeHaServices(FakeHaCluster()))
    gateway = master.gateway(master.start()["address"])
    master.grant(1)
    master.job_manager.suspended()
    with pytest.raises(LeadershipLost, match="in doubt"):
        gateway.submit_job(submission())
    master.job_manager.resumed()
    gateway.submit_job(submission())
    master.job_manager.revoked()
    assert master.exits == [61]


@pytest.mark.parametrize("leads", [True, False])
def test_a_master_that_was_halted_asks_whether_it_leads(
    leads: bool, start: Callable[..., Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    """kazoo tells of an expired session only when it hears of it; until then nothing may be decided."""
    cluster = FakeHaCluster()
    master = start(None, FakeHaServices(cluster))
    gateway = master.gateway(master.start()["address"])
    master.grant(1)
    gateway.submit_job(submission())
    cluster.election.epoch = 1 if leads else 2
    now = SystemClock.monotonic_ms
    monkeypatch.setattr(SystemClock, "monotonic_ms", lambda self: now(self) + 60_000)
    until(lambda: cluster.election.confirmed or None)
    assert cluster.election.confirmed == [Fence("leader-1", 1)]
    assert master.launcher.killed == []
    if leads:
        until(lambda: _is_answered(lambda: gateway.cancel_job(JOB)) or None)
    else:
        until(lambda: master.exits or None)
        assert master.exits[0] == 61
        with pytest.raises(LeadershipLost, match="in doubt"):
            gateway.cancel_job(JOB)


def _is_answered(call: Callable[[], None]) -> bool:
    try:
        call()
    except LeadershipLost:
        return False
    return True


def test_the_end_is_told_to_all_masters(start: Callable[..., Cluster]) -> None:
    """Whoever leads first submits the job, and the others do not run it again."""
    shared = FakeHaCluster()
    first, second = (start(DeploymentMode.PER_JOB, FakeHaServices(shared)) for _ in range(2))
    gateway = first.gateway(first.start(submission())["address"])
    second.start(submission())
    first.grant(1)
    until(lambda: gateway.list_jobs() or None)
    gateway.cancel_job(JOB)
    while not gateway.job_details(JOB).overview.status.globally_terminal:
        gateway.await_job_change(JOB, 0, 100)
    assert [master.result().status for master in (first, second)] == [JobStatus.CANCELED] * 2
    assert not shared.end.removed, "a master that YARN is just starting must find the end"
    assert not second.launcher.assignments


def test_what_the_last_cluster_of_a_name_left_is_removed(start: Callable[..., Cluster]) -> None:
    shared = FakeHaCluster()
    shared.end.result = ClusterResult(JobStatus.FINISHED)
    master = start(None, FakeHaServices(shared))
    with pytest.raises(LeadershipLost, match="is removed"):
        master.job_manager.run()
    assert shared.end.removed
    assert not (master.path / "result.json").exists(), "its supervisor would not start it again"


def test_a_standby_ends_with_its_cluster(start: Callable[..., Cluster]) -> None:
    shared = FakeHaCluster()
    first, second = (start(None, FakeHaServices(shared)) for _ in range(2))
    gateway = first.gateway(first.start()["address"])
    second.start()
    first.grant(1)
    until(lambda: len(shared.election.candidates) > 1 or None)
    gateway.shut_down_cluster()
    assert [master.result().status for master in (first, second)] == [JobStatus.FINISHED] * 2
    assert shared.end.removed


def test_a_job_that_has_ended_is_not_submitted_again(start: Callable[..., Cluster]) -> None:
    """The first master died after the job's end and before that of its cluster."""
    shared = FakeHaCluster()
    first = start(DeploymentMode.PER_JOB, FakeHaServices(shared))
    gateway = first.gateway(first.start(submission())["address"])
    first.grant(1)
    until(lambda: gateway.list_jobs() or None)
    gateway.cancel_job(JOB)
    until(lambda: shared.stores.ended.stored.get(JOB))
    next_cluster = FakeHaCluster()
    next_cluster.stores = shared.stores
    second = start(DeploymentMode.PER_JOB, FakeHaServices(next_cluster))
    second.start(submission())
    second.grant(2)
    assert second.result().status is JobStatus.CANCELED
    assert not second.launcher.assignments


def test_drivers_nobody_has_a_claim_to_are_ended(start: Callable[..., Cluster]) -> None:
    """They were asked for by a JobManager that died before their jobs' leases were taken."""
    shared = FakeHaCluster()
    first = start(None, FakeHaServices(shared))
    gateway = first.gateway(first.start()["address"])
    first.grant(1)
    gateway.submit_job(submission())
    first.close()
    shared.stores.lease_table.hold(DriverLeaseInfo(JOB, DriverId("held"), "d:1", "d", 1, 1))
    second = start(None, FakeHaServices(shared))
    second.job_manager.running_drivers([DriverId("held"), DriverId("lost")])
    second.start()
    second.grant(2)
    assert second.launcher.killed == ["lost"]


@pytest.mark.parametrize(
    ("container", "number"),
    [
        ("container_e17_1410901177871_0001_01_000005", "1410901177871_0001"),
        ("container_1410901177871_0012_02_000005", "1410901177871_0012"),
        ("application_1410901177871_0012/taskmanager_3", "1410901177871_0012"),
        ("application_1410901177871_0012x", ""),
        ("taskmanager-1-abc", ""),
        ("", ""),
    ],
)
def test_the_application_of_a_container(container: str, number: str) -> None:
    assert master_module.application_number(container) == number
