"""A driver between a fake Spark, fake JobMasters and a fake ZooKeeper."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.patience import PATIENCE
from yarnflow.core.checkpoint.manifest import from_bytes
from yarnflow.core.checkpoint.messages import CheckpointOrder, CheckpointOutcome, RestoreSettings
from yarnflow.core.ids import DriverId, ExecutorId, JobId
from yarnflow.core.messages import (
    DriverAssignment,
    DriverDeployment,
    DriverPhase,
    Fence,
    IdleQueries,
    JobSubmission,
    LeaderInfo,
    MetricDump,
    ProgramKind,
    QueryProgress,
)
from yarnflow.core.metrics import ScopeKind
from yarnflow.core.ports import JobMasterGateway
from yarnflow.core.resources.attachment import ExecutorAttachment
from yarnflow.core.submissions import submission_digest
from yarnflow.errors import CheckpointFailed, YarnflowError
from yarnflow.graph.codec import job_graph_to_json
from yarnflow.graph.job_graph import JobGraph
from yarnflow.ha.single_master import SingleMasterRetrieval
from yarnflow.runtime.driver.driver import Driver
from yarnflow.runtime.driver.run_context import RunContext
from yarnflow.runtime.driver.services import DriverSettings, Milestones, RunningProgram
from yarnflow.runtime.leader_follower import LeaderFollower
from yarnflow.runtime.registration import RegistrationBackoff
from yarnflow.testing.gateways.job_master import FakeJobMaster
from yarnflow.testing.ha.driver_lease import FakeDriverLease
from yarnflow.testing.ha.leader_retrieval import FakeLeaderRetrieval
from yarnflow.testing.runtime import ManualClock

MAIN = "driver-main"
JOB = JobId("1" * 32)
ASSIGNMENT = DriverAssignment(JOB, DriverId("d1"), "host:1", Fence("l", 1), "/checkpoints", "/work")
GRAPH = job_graph_to_json(JobGraph(JOB, "job", ProgramKind.GRAPH))
SUBMISSION = JobSubmission(JOB, "job", ProgramKind.GRAPH, GRAPH, {})
DIGEST = submission_digest(SUBMISSION)


class RisingClock(ManualClock):
    """Rises by one with each look, so that a wait for a time comes to its end."""

    def now_ms(self) -> int:
        self.advance(1)
        return super().now_ms()

    def monotonic_ms(self) -> int:
        return self.now_ms()


class FakeProgram:
    """Ends when told to."""

    def __init__(self, fence: Callable[[], None], compiles_on_executors: bool = False) -> None:
        self.fence = fence
        self.compiles_on_executors = compiles_on_executors
        self.orders: list[CheckpointOrder] = []
        #: while cleared orders take their time
        self.may_complete = threading.Event()
        self.may_complete.set()
        self.checkpoint_error: Exception | None = None
        self.prepared = threading.Event()
        self.started = threading.Event()
        self.stopped = threading.Event()
        #: set by the end and by stop
        self.ended = threading.Event()
        self._error: BaseException | None = None

    def prepare(self) -> None:
        self.prepared.set()

    def start(self) -> None:
        assert self.prepared.is_set()
        self.started.set()

    def await_end(self) -> None:
        assert self.ended.wait(PATIENCE.thread_s)
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        self.stopped.set()
        self.ended.set()

    def take_checkpoint(self, order: CheckpointOrder) -> CheckpointOutcome:
        self.orders.append(order)
        assert self.may_complete.wait(PATIENCE.thread_s)
        if self.stopped.is_set():
            raise CheckpointFailed("the program was stopped")
        if self.checkpoint_error is not None:
            raise self.checkpoint_error
        return CheckpointOutcome(order.checkpoint_id, copied_bytes=7)

    def end(self, error: BaseException | None = None) -> None:
        self._error = error
        self.ended.set()


class FakeBackend:
    def __init__(self, lease: FakeDriverLease) -> None:
        self._lease = lease
        #: what happened, in order
        self.story: list[str] = []
        self.restore_error: YarnflowError | None = None
        #: while cleared a restore takes its time
        self.restoring, self.may_restore = threading.Event(), threading.Event()
        self.may_restore.set()
        self.executors: tuple[str, ...] = ("0", "1")
        self.programs: list[FakeProgram] = []
        #: what programs were made from
        self.contexts: list[RunContext] = []
        self.queries: tuple[QueryProgress, ...] = ()
        self.idleness = IdleQueries(300)
        self.is_usable = True
        self.closed = False
        self.may_release = True
        self.open_error: YarnflowError | None = None
        self.complete_error: YarnflowError | None = None
        #: while cleared the session is not there
        self.may_complete = threading.Event()
        self.may_complete.set()
        self.compiles_on_executors = False
        self.program_error: YarnflowError | None = None
        self.listener: Callable[[], None] | None = None
        self.made = threading.Condition()
        self.rehearsing, self.rehearsed = threading.Event(), threading.Event()
        #: how often was measured while the attempt ran, and after it
        self.measured: list[bool] = []
        self.metrics_error: Exception | None = None

    def metrics(self, last: bool) -> tuple[MetricDump, ...]:
        self.measured.append(last)
        if self.metrics_error is not None:
            raise self.metrics_error
        return (MetricDump(ScopeKind.JOB, counts={"measurement": len(self.measured), "last": int(last)}),)

    def rehearse(self, assignment: DriverAssignment, wanted: Callable[[], bool]) -> None:
        self.rehearsing.set()
        while not wanted():
            threading.Event().wait(0.001)
        self.rehearsed.set()

    def open(self, assignment: DriverAssignment) -> ExecutorAttachment:
        if self.open_error is not None:
            raise self.open_error
        return ExecutorAttachment("spark://x", "app-1", ("-Da=b",), {"E": "1"})

    def complete(self) -> None:
        assert threading.current_thread().name == MAIN
        assert self.may_complete.wait(PATIENCE.thread_s)
        if self.complete_error is not None:
            raise self.complete_error

    def executor_ids(self) -> tuple[str, ...]:
        return self.executors

    def restore(self, context: RunContext, fence: Callable[[], None]) -> bool:
        assert threading.current_thread().name == MAIN
        fence()
        assert context.restore is not None
        self.story.append(f"restore {context.restore.path} with {len(self._lease.acquired)} leases")
        self.restoring.set()
        while not self.may_restore.wait(0.001):
            fence()
        if self.restore_error is not None:
            raise self.restore_error
        return True

    def program(self, context: RunContext, fence: Callable[[], None]) -> RunningProgram:
        self.contexts.append(context)
        self.story.append(f"program with {len(self._lease.acquired)} leases")
        if self.program_error is not None:
            raise self.program_error
        with self.made:
            self.programs.append(FakeProgram(fence, self.compiles_on_executors))
            self.made.notify_all()
        return self.programs[-1]

    def progress(self) -> tuple[QueryProgress, ...]:
        return self.queries

    def idle(self) -> IdleQueries:
        return self.idleness

    def on_progress(self, listener: Callable[[], None]) -> None:
        self.listener = listener

    def set_log_level(self, logger: str, level: str) -> None:
        self.story.append(f"{logger} has level {level}")

    def usable(self) -> bool:
        return self.is_usable

    def release(self) -> bool:
        self.story.append(f"left, released={self._lease.released}")
        return self.may_release

    def close(self) -> None:
        self.closed = True
        self.story.append(f"closed, released={self._lease.released}")

    def await_prepared(self, count: int) -> FakeProgram:
        with self.made:
            assert self.made.wait_for(lambda: len(self.programs) >= count, PATIENCE.thread_s)
        assert self.programs[count - 1].prepared.wait(PATIENCE.thread_s)
        return self.programs[count - 1]

    def await_program(self, count: int) -> FakeProgram:
        assert self.await_prepared(count).started.wait(PATIENCE.thread_s)
        return self.programs[count - 1]


class FakeStateOwner:
    """Notes what becomes this job's, and refuses when told to."""

    def __init__(self, story: list[str]) -> None:
        self._story = story
        self.error: YarnflowError | None = None
        self.describe_error: YarnflowError | None = None

    def hold(self) -> None:
        """The job's own directory; not worth a line."""
        if self.error is not None:
            raise self.error

    def describe(self, manifest: bytes) -> None:
        metadata = from_bytes(manifest, "the marker")
        if self.describe_error is not None:
            raise self.describe_error
        self._story.append(f"describe {metadata.job_key}")

    def claim(self, path: str, job_key: str) -> None:
        self._story.append(f"claim {path}" + f" for {job_key}" * bool(job_key))
        if self.error is not None:
            raise self.error

    def give_back(self, path: str) -> None:
        self._story.append(f"give back {path}")


class Harness:
    """One driver.  ``masters`` makes it highly available."""

    def __init__(self, masters: FakeLeaderRetrieval | None = None) -> None:
        self.lease = FakeDriverLease()
        self.backend = FakeBackend(self.lease)
        self.owner = FakeStateOwner(self.backend.story)
        self.job_masters: dict[str, FakeJobMaster] = {}
        self.fences: dict[str, Fence] = {}
        self.job_master = self.job_master_at(ASSIGNMENT.job_master_address)
        self.halted = threading.Event()
        self.halt_error: YarnflowError | None = None
        self.status: int | None = None
        self.milestones = Milestones(RisingClock(), {"DRIVER_STARTED": 7})
        self.settings = DriverSettings(
            report_interval_ms=20,
            report_min_pause_ms=1,
            executor_timeout_ms=5,
            leave_timeout_ms=10_000,
            lease_timeout_ms=5,
            checkpoint_timeout_ms=10**9,
            recovery_timeout_ms=10**9,
            registration_backoff=RegistrationBackoff(1, 5),
        )
        self.assignment = ASSIGNMENT
        launcher = LeaderInfo(ASSIGNMENT.fence, ASSIGNMENT.job_master_address, "0", "cluster")
        self.link = LeaderFollower(masters or SingleMasterRetrieval(launcher), self._connect, launcher)
        self._driver: Driver | None = None
        self._main = threading.Thread(target=self._run, name=MAIN, daemon=True)

    @property
    def driver(self) -> Driver:
        """Made when it is first needed, with the settings of that time."""
        if self._driver is None:
            self._driver = Driver(
                self.assignment,
                self.backend,
                self.link,
                RisingClock(),
                self.milestones,
                pid=42,
                halt=self._halt,
                lease=self.lease,
                settings=self.settings,
                owner=self.owner,
            )
        return self._driver

    def job_master_at(self, address: str) -> FakeJobMaster:
        """The master at an address, made when missing."""
        return self.job_masters.setdefault(address, FakeJobMaster(PATIENCE.thread_s))

    def _connect(self, leader: LeaderInfo) -> JobMasterGateway:
        self.fences[leader.address] = leader.fence
        return self.job_master_at(leader.address)

    def _halt(self, error: YarnflowError | None) -> None:
        self.halt_error = error
        self.halted.set()

    def _run(self) -> None:
        self.status = self.driver.run("host:99")

    def start(self) -> None:
        self.driver.ping()
        self._main.start()

    def join(self) -> int | None:
        self._main.join(PATIENCE.thread_s)
        assert not self._main.is_alive()
        return self.status

    def close(self) -> None:
        for program in self.backend.programs:
            program.may_complete.set()
        self.driver.shut_down()
        if self._main.ident is not None:
            self.join()

    def deploy(
        self,
        attempt: int,
        executors: tuple[str, ...] = ("0", "1"),
        restore: RestoreSettings | None = None,
        submission: JobSubmission | None = SUBMISSION,
        digest: str = DIGEST,
    ) -> None:
        self.driver.deploy(
            DriverDeployment(
                attempt,
                submission,
                tuple(ExecutorId(e) for e in executors),
                restore=restore,
                submission_digest=digest,
            )
        )

    def run_program(self, attempt: int = 1) -> FakeProgram:
        """Start, deploy and wait until the program is reported to run."""
        self.start()
        self.deploy(attempt)
        program = self.backend.await_program(1)
        self.job_master.await_phase(attempt, DriverPhase.RUNNING)
        return program
