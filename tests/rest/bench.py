"""A cluster with one ended job, one live one and a TaskManager, as REST sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from tests.rest.asgi import ask
from yarnflow.core.checkpoint.messages import (
    CheckpointInfo,
    CheckpointKind,
    CheckpointStatus,
    CheckpointTrigger,
    JobCheckpoints,
    QueryPosition,
    RestoredState,
    SourceProgress,
    StateOperatorProgress,
)
from yarnflow.core.ha.ports import Leadership, MasterInfo
from yarnflow.core.ids import JobId, TaskManagerId, VertexId
from yarnflow.core.job.description import JobDescription, PlanInput, PlanNode
from yarnflow.core.messages import (
    ClusterOverview,
    ErrorInfo,
    ExecutionInfo,
    FailureInfo,
    Fence,
    JobDetails,
    JobOverview,
    LeaderInfo,
    QueryProgress,
    TaskManagerRegistration,
    VertexInfo,
)
from yarnflow.core.metrics import MetricScope, ScopeKind
from yarnflow.core.resources.provider import TaskManagerInfo
from yarnflow.core.states import ExecutionState as S
from yarnflow.core.states import JobStatus, RestartLevel
from yarnflow.rest.access.hosts import AllowedHosts
from yarnflow.rest.answers.cluster import Features
from yarnflow.rest.framework.application import HandlerPool
from yarnflow.rest.framework.authentication import Authentication
from yarnflow.rest.framework.changes import JobChanges
from yarnflow.rest.framework.operations import Operations
from yarnflow.rest.framework.server import Guarded
from yarnflow.rest.handlers.context import Cluster, ClusterInfo, Programs
from yarnflow.rest.programs.store import ProgramStore
from yarnflow.rest.web import application
from yarnflow.testing.gateways.cluster_view import FakeClusterView, FakeMetrics
from yarnflow.testing.gateways.programs import FakeProgramRunner
from yarnflow.testing.gateways.task_executor import FakeTaskExecutor
from yarnflow.testing.runtime import ManualClock

OLD, NEW = JobId("a" * 32), JobId("b" * 32)
NOW_MS = 1_000_000
MAX_PROGRAM_BYTES = 1_000
#: what tests ask for
HOSTS = AllowedHosts(["jm", "x"], "gateway.example, .ingress.example")


def vertex(*states: S, name: str = "v1") -> VertexInfo:
    executions = tuple(
        ExecutionInfo(
            index, 0, state, "h:container_1", {"CREATED": 900_000, "DEPLOYING": 910_000, state.name: 920_000}
        )
        for index, state in enumerate(states)
    )
    return VertexInfo(VertexId(name), "Source", len(states), 128, "default", executions)


FAILURES = (
    FailureInfo(930_000, ErrorInfo("EXECUTOR_LOST", "executor 1 is lost"), "tm-1", RestartLevel.TASKS, True),
    FailureInfo(
        940_000,
        ErrorInfo("USER_CODE", "ValueError: <b>", "Traceback\n  <script>"),
        "driver-1",
        RestartLevel.QUERY,
    ),
)
ENDED = JobDetails(
    JobOverview(OLD, "old & <job>", JobStatus.FAILED, 900_000, 950_000),
    7,
    {"CREATED": 900_000, "FAILED": 950_000},
    (vertex(S.FAILED, S.CANCELED),),
    failures=FAILURES,
)
KAFKA = SourceProgress(
    "KafkaV2[Subscribe[t]]",
    end_offset='{"t":{"0":5,"1":7}}',
    latest_offset='{"t":{"0":20,"1":7}}',
    input_rows=7,
)
DEDUPE = StateOperatorProgress("dedupe", 3, 900, rows_updated=2, rows_removed=1, partitions=4)
LIVE = JobDetails(
    JobOverview(NEW, "flights", JobStatus.RUNNING, 960_000, -1, slots_allocated=1, slots_required=2),
    3,
    {"CREATED": 960_000, "RUNNING": 970_000},
    (vertex(S.RUNNING, S.SCHEDULED), vertex(S.RUNNING, S.RUNNING, name="v2")),
    queries=(QueryProgress("q", batch_id=4, total_input_rows=10, sources=(KAFKA,), operators=(DEDUPE,)),),
    waiting_for="slots: 1 of 2",
)
POSITION = QueryPosition(
    "q", 4, "hdfs://n/q", 980_000, -1, operators=(StateOperatorProgress("stateStoreSave", 10, 2_000),)
)
KIND, DONE, WHY = CheckpointKind, CheckpointStatus.COMPLETED, CheckpointTrigger
CHECKPOINTS = JobCheckpoints(
    NEW,
    completed=20,
    failed=1,
    history=(
        CheckpointInfo(24, KIND.CHECKPOINT, CheckpointStatus.IN_PROGRESS, WHY.INTERVAL, 999_000),
        CheckpointInfo(
            23, KIND.SAVEPOINT, DONE, WHY.STOP, 990_000, 994_000, 100, 40, 3_500, 20, (POSITION,),
            "hdfs://n/sp<", 5_000,
        ),
        CheckpointInfo(
            22, KIND.CHECKPOINT, CheckpointStatus.FAILED, WHY.REQUESTED, 985_000, 986_000, failure="<no>"
        ),
        CheckpointInfo(
            21, KIND.CHECKPOINT, DONE, WHY.INTERVAL, 980_000, 980_500, positions=(POSITION,),
            external_path="hdfs://n/chk-21",
        ),
        CheckpointInfo(
            20, KIND.CHECKPOINT, DONE, WHY.INTERVAL, 970_000, 970_100, external_path="hdfs://n/chk-20",
            discarded=True,
        ),
    ),
    restored=RestoredState("hdfs://n/old", KIND.SAVEPOINT, 3, 960_000, "CLAIM"),
    interval_ms=10_000,
    timeout_ms=600_000,
)  # fmt: skip
TASK_MANAGER = TaskManagerInfo(
    TaskManagerRegistration(
        TaskManagerId("h:container_1"),
        "h:1",
        "h",
        1,
        4,
        "taskmanager_0",
        1728,
        900,
        cores=2,
        physical_memory_bytes=8 << 30,
        memory_mib={"framework": 128, "overhead": 192, "metaspace": 256, "python": 252, "offheap": 0},
    ),
    slots=4,
    free_slots=3,
    last_heartbeat_ms=999_000,
    job_ids=(NEW,),
)
MASTERS = Leadership(
    LeaderInfo(Fence("1ead", 3), "h:6123", "9.9", "c", "http://h:8081"),
    950_000,
    (MasterInfo("57a4d", "g:6123", "g", 7, "application_1_2", "http://g:8081"),),
)
DESCRIPTION = JobDescription(
    NEW,
    "flights",
    nodes=(
        PlanNode(VertexId("v2"), 2, ("window: count",), (PlanInput(VertexId("v1"), "HASH"),)),
        PlanNode(VertexId("v1"), 2, ("source: files",)),
    ),
    parallelism=2,
    max_parallelism=128,
    restart_strategy="exponential-delay",
    scheduler="default",
    state_backend="hashmap",
    job_parameters={"limit": "3"},
)
#: of the two subtasks of v1
IO = (
    {"numRecordsIn": 10, "numRecordsOut": 4, "numBytesIn": 100, "numBytesOut": 40, "accumulateBusyTimeMs": 7,
     "accumulateIdleTimeMs": 3, "accumulateBackPressuredTimeMs": 1, "currentInputWatermark": 990_000,
     "backPressuredTimeMsPerSecond": 600, "idleTimeMsPerSecond": 100, "busyTimeMsPerSecond": 300},
    {"numRecordsIn": 20, "numRecordsOut": 6, "numBytesIn": 200, "numBytesOut": 60, "accumulateBusyTimeMs": 9,
     "accumulateIdleTimeMs": 1, "accumulateBackPressuredTimeMs": 0, "currentInputWatermark": 980_000,
     "backPressuredTimeMsPerSecond": 0, "idleTimeMsPerSecond": 900, "busyTimeMsPerSecond": 100},
)  # fmt: skip


def subtask(index: int, vertex_id: str = "v1", job_id: JobId = NEW) -> MetricScope:
    return MetricScope(ScopeKind.SUBTASK, job_id=job_id, vertex_id=VertexId(vertex_id), subtask_index=index)


class Bench:
    """The REST interface of such a cluster; this object has all parts of it."""

    def __init__(
        self,
        secret: bytes = b"",
        proxy_path: str = "",
        uploads: Path | None = None,
        *,
        loopback_reads: bool = False,
    ) -> None:
        self.clock = ManualClock(NOW_MS)
        self.view = FakeClusterView(
            [ENDED, LIVE],
            {NEW: CHECKPOINTS},
            {NEW: DESCRIPTION},
            [TASK_MANAGER],
            ClusterOverview(1, 4, 3, 1, 0, 0, 1, "9.9"),
            MASTERS,
            FakeTaskExecutor(logs={"taskmanager.log": b"0123456789", "taskmanager.out": b"printed"}),
        )
        self.metrics = FakeMetrics({subtask(index): dict(values) for index, values in enumerate(IO)})
        self.diagnostics = FakeTaskExecutor(logs={"jobmanager.log": b"jobmanager's"})
        self.operations = Operations(300_000, self.clock.monotonic_ms)
        self.changes = JobChanges()
        #: of codes and sessions
        self.passed_s = 0.0
        self.pool = HandlerPool(2)
        self.runner = FakeProgramRunner(NEW, DESCRIPTION)
        info = ClusterInfo(
            {"a.b": "1", "c.secret": "******"}, 3_000, "9.9", Features(False, True, False, False)
        )
        self.cluster = Cluster(
            self.view, self.metrics, self.diagnostics, self.operations, self.clock, info, self.changes,
            None if uploads is None else Programs(ProgramStore(uploads), self.runner, MAX_PROGRAM_BYTES),
        )  # fmt: skip
        self.app: ASGIApp = Guarded(
            application(self.cluster, Authentication(secret, loopback_reads, self.now_s), self.pool),
            HOSTS,
            proxy_path,
        )

    def now_s(self) -> float:
        """Time since the epoch."""
        return NOW_MS / 1000 + self.passed_s

    def get(self, target: str, status: int = 200) -> Any:
        """The JSON of an answer."""
        answer = ask(self.app, "GET", target)
        assert answer.status == status, answer.body
        return answer.json
