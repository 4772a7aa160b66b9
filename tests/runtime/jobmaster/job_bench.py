"""A JobMaster with fakes all around, for scenarios of one job."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Self

from yarnflow.core.checkpoint.coordinator import CheckpointSettings
from yarnflow.core.checkpoint.messages import CheckpointOutcome, RestoreSettings
from yarnflow.core.ids import AllocationId, DriverId, ExecutorId, JobId, TaskManagerId, VertexId
from yarnflow.core.job.description import JobDescription
from yarnflow.core.job.restart import restart_strategy_from
from yarnflow.core.job_run.events import Adopted, Fresh
from yarnflow.core.messages import (
    DriverPhase,
    DriverRegistration,
    DriverReport,
    ErrorInfo,
    ExecutorStatus,
    Fence,
    JobDetails,
    JobSubmission,
    LeaderInfo,
    MetricDump,
    ProgramKind,
    QueryProgress,
    SlotOffer,
)
from yarnflow.core.resources.scheduling import SchedulerKind, SchedulerSettings
from yarnflow.core.states import ExecutionState, JobStatus
from yarnflow.graph.connectors.sinks import CollectSink
from yarnflow.graph.connectors.sources import RateSource
from yarnflow.graph.job_graph import JobGraph, JobVertex, StreamNode
from yarnflow.graph.operators import Operator
from yarnflow.graph.schema import Schema
from yarnflow.runtime.dispatcher.job_board import JobBoard
from yarnflow.runtime.jobmaster.driver_keeper import DriverKeeper
from yarnflow.runtime.jobmaster.job_master import JobMaster
from yarnflow.runtime.jobmaster.services import JobMasterServices, JobMasterSettings, Retention
from yarnflow.runtime.leader_clock import Doubt, LeaderClock
from yarnflow.testing.driver_launcher import FakeDriverLauncher
from yarnflow.testing.gateways.driver import FakeDriver
from yarnflow.testing.gateways.factory import FakeGateways
from yarnflow.testing.runtime import InlineEffects, InlineMailbox, ManualClock
from yarnflow.testing.slot_requirements import FakeSlotRequirements
from yarnflow.testing.stores import FakeCheckpoints, FakeJobStores

JOB = JobId("a" * 32)
TM1, TM2, TM3 = TaskManagerId("tm-1"), TaskManagerId("tm-2"), TaskManagerId("tm-3")
ADDRESS = {TM1: "host1:1", TM2: "host2:1", TM3: "host3:1"}
DEFAULT = SchedulerSettings(slot_request_timeout_ms=10_000)
ADAPTIVE = SchedulerSettings(
    SchedulerKind.ADAPTIVE, resource_wait_timeout_ms=10_000, stabilization_timeout_ms=2_000
)
EVERY_10_S = CheckpointSettings(
    interval_ms=10_000, min_pause_ms=0, timeout_ms=60_000, retained=2
)
USER_ERROR = ErrorInfo("USER_CODE", "ValueError: bad row", "Traceback …")


def _node(node_id: int, operator: Operator, *inputs: int) -> StreamNode:
    return StreamNode(node_id, "node", f"{node_id:032x}", operator, inputs, Schema(()), 1, 128, "default")


#: nodes of a job whose program collects elements
COLLECTS = _node(1, RateSource(1)), _node(2, CollectSink(), 1)


class Bench:
    """A JobMaster of two slots with fakes all around."""

    def __init__(
        self,
        restart: str = "fixed-delay",
        kind: ProgramKind = ProgramKind.GRAPH,
        attempts: int = 2,
        scheduler: SchedulerSettings = DEFAULT,
        stores: FakeJobStores | None = None,
        recovered: bool = False,
        job_key: str = "",
        program_digest: str = "",
        checkpointing: CheckpointSettings = EVERY_10_S,
        retention: Retention = Retention.RETAIN_ON_CANCELLATION,
        restore: RestoreSettings | None = None,
        restore_if_lost: bool = False,
        savepoint_dir: str = "",
        effects: InlineEffects | None = None,
        hot_spare: bool = False,
        lead: bool = False,
        collects: bool = False,
        keeper: DriverKeeper | None = None,
        first_id: int = 1,
        description: JobDescription = JobDescription(JOB, "flights"),
    ) -> None:
        self.stores = stores or FakeJobStores()
        self.clock = ManualClock()
        #: its time, if ``lead``: a pause of a few seconds is noticed then
        self.time = LeaderClock(self.clock)
        clock = self.time if lead else self.clock
        self.gateways = FakeGateways()
        self.launcher = FakeDriverLauncher()
        self.keeper = keeper or DriverKeeper(0, clock, lambda _ms, _action: None, self.launcher.kill)
        self.slots = FakeSlotRequirements()
        self.board = JobBoard(self.clock, 10)
        self.ended: list[JobId] = []
        self.submission = JobSubmission(
            JOB, "flights", kind, "", {}, job_key, program_digest=program_digest
        )
        self.mailbox = InlineMailbox("job", clock, may_run=self.time.is_certain if lead else None)
        ids = (f"{number:08x}{0:024x}" for number in itertools.count(first_id))
        self.graph = JobGraph(
            JOB,
            "flights",
            kind,
            vertices=(
                JobVertex(VertexId("v1"), "source", (1,), 2, 128, "default"),
                JobVertex(VertexId("v2"), "window", (2,), 2, 128, "default"),
            ),
            nodes=COLLECTS if collects else (),
        )
        self.settings = JobMasterSettings(
            restart_strategy=restart_strategy_from(restart, fixed_delay_attempts=attempts),
            scheduler=scheduler,
            cancellation_timeout_ms=5_000,
            driver_heartbeat_timeout_ms=3_000,
            driver_registration_timeout_ms=20_000,
            driver_memory_mib=1000,
            checkpoint_dir=f"file:/checkpoints/{JOB}",
            work_dir="/work-dir",
            call_timeout_ms=1_000,
            checkpointing=checkpointing,
            checkpoint_root="file:/checkpoints",
            savepoint_dir=savepoint_dir,
            retention=retention,
            restore=restore,
            restore_if_lost=restore_if_lost,
            adoption_timeout_ms=5_000,
            hot_spare=hot_spare,
            keeps_driver=keeper is not None,
        )
        self.services = JobMasterServices(
            clock,
            effects or InlineEffects(),
            self.gateways,
            self.launcher,
            self.slots,
            self.board,
            lambda: LeaderInfo(Fence("leader", 1), "jm:6123", "0", "default"),
            lambda: next(ids),
            lambda: 0.0,
            self.stores,
            self.launcher,
            b"secret",
            self.keeper,
            self,
        )
        start = Adopted(1) if recovered else Fresh()
        self.master = JobMaster(
            *(self.submission, self.graph, self.settings, self.services),
            *(self.mailbox, self.ended.append, start, description),
        )
        self.launcher.on_exit(self.master.driver_exited)
        self._allocations = itertools.count(1)
        self.attempt = 1
        self.measured: list[tuple[JobId, tuple[MetricDump, ...]]] = []
        #: reports are of this one
        self.adopted_driver: DriverId | None = None

    def put_job(self, job_id: JobId, dumps: Sequence[MetricDump]) -> None:
        """Where what drivers measure goes."""
        self.measured.append((job_id, tuple(dumps)))

    # --- what happens ---

    def doubt(self) -> None:
        """The connection to ZooKeeper is lost."""
        self.time.doubt(Doubt.CONNECTION)
        self.master.suspended()

    def settle(self, doubt: Doubt) -> None:
        """This master leads all the same."""
        self.master.resumed()
        self.time.settle(doubt)

    def start(self) -> Self:
        self.master.start()
        return self.run()

    def run(self, ms: int = 0) -> Self:
        self.clock.advance(ms)
        self.mailbox.run_pending()
        return self

    def offer(
        self, task_manager: TaskManagerId, count: int = 1, executor: ExecutorStatus | None = None
    ) -> int:
        offers = [
            SlotOffer(
                AllocationId(f"alloc-{next(self._allocations)}"),
                index,
                task_manager,
                ADDRESS[task_manager],
                executor,
            )
            for index in range(count)
        ]
        accepted = self.master.offer_slots(offers)
        self.run()
        return len(accepted)

    def register(self, driver_id: DriverId | None = None, attempt: int = 0) -> Self:
        driver_id = driver_id or self.driver_id
        self.master.register_driver(
            DriverRegistration(
                JOB, driver_id, "driver:1", 42, "spark://x@y:1", f"app-{driver_id}", attempt=attempt
            )
        )
        return self.run()

    def report(self, phase: DriverPhase, executors: str = "0", batch: int = -1, **more: object) -> Self:
        self.master.report(
            DriverReport(
                JOB,
                self.adopted_driver or self.driver_id,
                self.attempt,
                phase,
                tuple(ExecutorId(executor) for executor in executors.split()),
                (QueryProgress("q", batch_id=batch, at_ms=batch * 1_000, batch_duration_ms=300),),
                **more,  # type: ignore[arg-type]
            )
        )
        return self.run()

    def running(self) -> Self:
        """A job that runs on two slots of one TaskManager."""
        self.start()
        self.offer(TM1, 2)
        return self.register().report(DriverPhase.RUNNING)

    def outcome(self, *outcomes: CheckpointOutcome, phase: DriverPhase = DriverPhase.RUNNING) -> Self:
        """A report that says what became of orders."""
        return self.report(phase, batch=7, checkpoints=outcomes)

    # --- what is seen ---

    @property
    def driver(self) -> FakeDriver:
        return self.gateways.drivers["driver:1"]

    @property
    def checkpoints(self) -> FakeCheckpoints:
        return self.stores.by_job[JOB]

    @property
    def driver_id(self) -> DriverId:
        return self.launcher.assignments[-1].driver_id

    @property
    def details(self) -> JobDetails:
        return self.board.get(JOB)

    def status(self) -> JobStatus:
        return self.details.overview.status

    @property
    def tasks(self) -> list[tuple[str, str]]:
        """State and TaskManager of each subtask of the source."""
        return [(e.state.name, e.task_manager_id) for e in self.details.vertices[0].executions]

    def states(self) -> set[ExecutionState]:
        return {execution.state for vertex in self.details.vertices for execution in vertex.executions}
