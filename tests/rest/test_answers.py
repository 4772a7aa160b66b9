"""The shapes of Flink's answers, and the page."""

from __future__ import annotations

import json
from typing import Any

import pytest

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
from yarnflow.core.ids import JobId, TaskManagerId, VertexId
from yarnflow.core.messages import (
    ClusterOverview,
    ErrorInfo,
    ExecutionInfo,
    FailureInfo,
    JobDetails,
    JobOverview,
    QueryProgress,
    TaskManagerRegistration,
    VertexInfo,
)
from yarnflow.core.resources.provider import TaskManagerInfo
from yarnflow.core.states import ExecutionState as S
from yarnflow.core.states import JobStatus, RestartLevel
from yarnflow.errors import JobNotFound
from yarnflow.rest import answers
from yarnflow.rest.routes import HTML, Routes
from yarnflow.testing.runtime import ManualClock

OLD, NEW = JobId("a" * 32), JobId("b" * 32)
NOW_MS = 1_000_000


def vertex(*states: S) -> VertexInfo:
    executions = tuple(
        ExecutionInfo(index, 0, state, "tm", {"CREATED": 900_000, "DEPLOYING": 910_000, state.name: 920_000})
        for index, state in enumerate(states)
    )
    return VertexInfo(VertexId("v1"), "Source", len(states), 128, "default", executions)


FAILURES = (
    FailureInfo(930_000, ErrorInfo("EXECUTOR_LOST", "executor 1 is lost"), "tm-1", RestartLevel.TASKS, True),
    FailureInfo(
        940_000, ErrorInfo("USER_CODE", "ValueError: <b>", "Traceback\n  <script>"), "", RestartLevel.QUERY
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
)
LIVE = JobDetails(
    JobOverview(NEW, "flights", JobStatus.RUNNING, 960_000, -1, slots_allocated=1, slots_required=2),
    3,
    {"CREATED": 960_000, "RUNNING": 970_000},
    (vertex(S.RUNNING, S.SCHEDULED), vertex(S.RUNNING, S.RUNNING)),
    queries=(QueryProgress("q", batch_id=4, total_input_rows=10, sources=(KAFKA,)),),
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
        TaskManagerId("h:container_1"), "h:1", "h", 1, 4, "taskmanager_0", 1728, 900, cores=2
    ),
    slots=4,
    free_slots=3,
    last_heartbeat_ms=999_000,
)


class View:
    """A JobManager with one ended job, one live one and a TaskManager."""

    def cluster_overview(self) -> ClusterOverview:
        return ClusterOverview(1, 4, 3, 1, 0, 0, 1, "9.9")

    def jobs(self) -> list[JobDetails]:
        return [ENDED, LIVE]

    def job_details(self, job_id: JobId) -> JobDetails:
        for details in self.jobs():
            if details.overview.job_id == job_id:
                return details
        raise JobNotFound(f"no job {job_id} on this cluster")

    def job_checkpoints(self, job_id: JobId) -> JobCheckpoints:
        if job_id == NEW:
            return CHECKPOINTS
        self.job_details(job_id)
        return JobCheckpoints(job_id)

    def task_managers(self) -> list[TaskManagerInfo]:
        return [TASK_MANAGER]


ROUTES = Routes(View(), ManualClock(NOW_MS))


def get(path: str, status: int = 200) -> Any:
    answer = ROUTES.answer("GET", path)
    assert answer.status == status
    assert answer.content_type.startswith("application/json")
    return json.loads(answer.body)


def test_overview() -> None:
    assert get("/overview") == {
        "taskmanagers": 1, "slots-total": 4, "slots-available": 3,
        "jobs-running": 1, "jobs-finished": 0, "jobs-cancelled": 0, "jobs-failed": 1,
        "flink-version": "9.9", "flink-commit": "",
    }  # fmt: skip


def test_jobs() -> None:
    assert get("/jobs") == {"jobs": [{"id": OLD, "status": "FAILED"}, {"id": NEW, "status": "RUNNING"}]}


def test_jobs_overview_has_the_newest_job_first() -> None:
    live, ended = get("/jobs/overview")["jobs"]
    assert (live["jid"], live["name"], live["state"]) == (NEW, "flights", "RUNNING")
    assert (live["start-time"], live["end-time"], live["duration"]) == (960_000, -1, 40_000)
    assert live["tasks"]["total"] == 4
    assert {state for state, count in live["tasks"].items() if count} == {"total", "running", "scheduled"}
    assert live["waiting-for"] == "slots: 1 of 2"
    assert (ended["end-time"], ended["duration"], ended["last-modification"]) == (950_000, 50_000, 950_000)


def test_job() -> None:
    made = get(f"/jobs/{NEW}")
    assert (made["state"], made["now"], made["duration"]) == ("RUNNING", NOW_MS, 40_000)
    assert set(made["timestamps"]) == {status.name for status in JobStatus} - {"RECOVERY_FAILED"}
    assert (made["timestamps"]["RUNNING"], made["timestamps"]["FAILED"]) == (970_000, 0)
    first, second = made["vertices"]
    assert (first["status"], first["parallelism"], first["maxParallelism"]) == ("RUNNING", 2, 128)
    assert (first["tasks"]["RUNNING"], first["tasks"]["SCHEDULED"]) == (1, 1)
    assert (first["start-time"], first["end-time"], first["duration"]) == (910_000, -1, 90_000)
    assert made["status-counts"]["RUNNING"] == 2
    assert made["queries"][0]["batch-id"] == 4
    assert made["queries"][0]["sources"] == [
        {"description": "KafkaV2[Subscribe[t]]", "behind": {"t-0": 15, "t-1": 0}}
    ]


def test_other_sources_are_behind_nothing() -> None:
    for offset in ('{"logOffset":5}', "17", "", "none", "null", "[]"):
        assert SourceProgress("x", end_offset=offset, latest_offset=offset).behind == {}
    new = SourceProgress("x", end_offset='{"t":{"0":5}}', latest_offset='{"t":{"0":4,"1":9}}')
    assert new.behind == {"t-0": 0}, "of a partition that was just made nothing is known"


def test_a_vertex_ends_with_its_last_subtask() -> None:
    (made,) = get(f"/jobs/{OLD}")["vertices"]
    assert (made["status"], made["end-time"], made["duration"]) == ("FAILED", 920_000, 10_000)


def test_exceptions_have_the_newest_first() -> None:
    history = get(f"/jobs/{OLD}/exceptions")["exceptionHistory"]
    assert history["truncated"] is False
    user, executor = history["entries"]
    assert (user["exceptionName"], user["timestamp"]) == ("USER_CODE", 940_000)
    assert user["stacktrace"] == "ValueError: <b>\nTraceback\n  <script>"
    assert user["taskManagerId"] is None
    assert (executor["taskManagerId"], executor["failureLabels"]["recovered"]) == ("tm-1", "true")


def test_task_managers() -> None:
    (made,) = get("/taskmanagers")["taskmanagers"]
    assert (made["id"], made["path"]) == ("h:container_1", "h:1")
    assert (made["slotsNumber"], made["freeSlots"]) == (4, 3)
    assert made["timeSinceLastHeartbeat"] == 999_000
    assert made["memoryConfiguration"]["totalProcessMemory"] == 1728 * 1024 * 1024


def test_checkpoints() -> None:
    made = get(f"/jobs/{NEW}/checkpoints")
    assert made["counts"] == {"restored": 1, "total": 22, "in_progress": 1, "completed": 20, "failed": 1}
    assert [(entry["id"], entry["className"]) for entry in made["history"]] == [
        (24, "in_progress"), (23, "completed"), (22, "failed"), (21, "completed"), (20, "completed"),
    ]  # fmt: skip
    latest = made["latest"]
    assert (latest["completed"]["id"], latest["savepoint"]["id"], latest["failed"]["id"]) == (21, 23, 22)
    assert latest["restored"] == {
        "id": 3, "restore_timestamp": 960_000, "is_savepoint": True, "external_path": "hdfs://n/old",
        "claim-mode": "CLAIM",
    }  # fmt: skip
    took = made["summary"]["end_to_end_duration"]
    assert [took[name] for name in ("min", "max", "avg", "p50", "p999")] == [100, 4_000, 1_533, 500, 4_000]


def test_one_checkpoint() -> None:
    running, savepoint, failed, done, gone = get(f"/jobs/{NEW}/checkpoints")["history"]
    assert (running["end_to_end_duration"], running["latest_ack_timestamp"]) == (1_000, -1)
    assert (savepoint["is_savepoint"], savepoint["checkpoint_type"]) == (True, "SYNC_SAVEPOINT")
    assert (savepoint["state_size"], savepoint["checkpointed_size"]) == (2_000, 5_000)
    assert savepoint["external_path"] == "hdfs://n/sp<" and savepoint["pause"] == 40
    assert (failed["failure_timestamp"], failed["failure_message"]) == (986_000, "<no>")
    assert (done["checkpoint_type"], done["discarded"], gone["discarded"]) == ("CHECKPOINT", False, True)
    assert done["queries"][0]["operators"][0]["rows"] == 10
    assert get(f"/jobs/{NEW}/checkpoints/details/21") == done


def test_checkpoints_of_a_job_without_any() -> None:
    made = get(f"/jobs/{OLD}/checkpoints")
    assert made["history"] == [] and made["counts"]["total"] == 0
    assert made["latest"] == {"completed": None, "savepoint": None, "failed": None, "restored": None}
    # as Flink: there is no quantile of nothing
    assert made["summary"]["state_size"] == {
        "min": 0, "max": 0, "avg": 0, **dict.fromkeys(("p50", "p90", "p95", "p99", "p999"), "NaN")
    }  # fmt: skip


def test_checkpoint_config() -> None:
    made = get(f"/jobs/{NEW}/checkpoints/config")
    assert (made["mode"], made["interval"], made["timeout"]) == ("exactly_once", 10_000, 600_000)
    assert made["externalization"] == {"enabled": True, "delete_on_cancellation": False}
    assert made["tolerable_failed_checkpoints"] == 2**31 - 1


@pytest.mark.parametrize(
    "states, whole",
    [
        ((), S.CREATED),
        ((S.CREATED, S.SCHEDULED), S.CREATED),
        ((S.RUNNING, S.SCHEDULED), S.RUNNING),
        ((S.RUNNING, S.INITIALIZING), S.INITIALIZING),
        ((S.FINISHED, S.FINISHED), S.FINISHED),
        ((S.FINISHED, S.SCHEDULED), S.RUNNING),
        ((S.FINISHED, S.CANCELED), S.CANCELED),
        ((S.CANCELING, S.FAILED), S.FAILED),
    ],
)
def test_the_state_of_a_vertex(states: tuple[S, ...], whole: S) -> None:
    assert answers.vertex_status(vertex(*states)) is whole


@pytest.mark.parametrize(
    "method, path, status, said",
    [
        ("GET", "/nothing", 404, "nothing at /nothing"),
        ("GET", "/jobs/overview/more", 404, "nothing at"),
        ("GET", "/../secret", 404, "nothing at"),
        ("GET", f"/jobs/{'c' * 32}", 404, "no job ccc"),
        ("GET", f"/jobs/{'c' * 32}/exceptions", 404, "no job ccc"),
        ("GET", f"/jobs/{'c' * 32}/checkpoints", 404, "no job ccc"),
        ("GET", "/jobs/zz/checkpoints/config", 400, "'zz' is not a job id"),
        ("GET", f"/jobs/{NEW}/checkpoints/details/7", 404, "Checkpoint 7 of job"),
        ("GET", f"/jobs/{NEW}/checkpoints/details/x", 400, "'x' is not the number"),
        ("POST", f"/jobs/{NEW}/checkpoints", 405, "use GET"),
        ("GET", "/jobs/zz", 400, "'zz' is not a job id"),
        ("POST", "/jobs/overview", 405, "use GET, not POST"),
        ("PATCH", f"/jobs/{NEW}", 405, "use GET"),
        ("POST", "/nothing", 404, "nothing at"),
    ],
)
def test_what_is_not_there(method: str, path: str, status: int, said: str) -> None:
    answer = ROUTES.answer(method, path)
    assert answer.status == status
    assert said in json.loads(answer.body)["errors"][0]


@pytest.mark.parametrize("path", ["/jobs/overview/", "//jobs/overview", "/jobs/overview?x=1#y"])
def test_forms_of_a_path(path: str) -> None:
    assert len(get(path)["jobs"]) == 2


def test_the_page() -> None:
    answer = ROUTES.answer("GET", "/")
    assert (answer.status, answer.content_type) == (200, HTML)
    page = answer.body.decode()
    for text in (
        "old &amp; &lt;job&gt;", "flights", "RUNNING", "slots: 1 of 2", "1 SCHEDULED", "h:container_1",
        "20 completed", "hdfs://n/sp&lt;", "&lt;no&gt;", "10 rows, 2,000 B", "4000 ms", "discarded",
        "USER_CODE: ValueError: &lt;b&gt;", "  &lt;script&gt;", "executor 1 is lost",
        "1970-01-01 00:15:40 UTC",
    ):  # fmt: skip
        assert text in page, text
    assert "<script" not in page and "<b>" not in page
    assert page.index("flights") < page.index("old &amp;"), "the newest job does not come first"
    assert 'href="/' not in page and 'href="http' not in page, "an absolute link does not pass a proxy"


def test_the_page_of_an_empty_cluster() -> None:
    class Empty(View):
        def jobs(self) -> list[JobDetails]:
            return []

        def task_managers(self) -> list[TaskManagerInfo]:
            return []

    assert b"none" in Routes(Empty(), ManualClock(NOW_MS)).answer("GET", "").body


def test_a_state_that_flink_does_not_have_is_shown_as_the_nearest_one_of_its() -> None:
    overview = JobOverview(NEW, "job", JobStatus.RECOVERY_FAILED, 900_000, -1)
    failure = FailureInfo(900_000, ErrorInfo("JOB_UNREADABLE", "its graph is damaged"))
    details = JobDetails(overview, 1, failures=(failure,), waiting_for="its graph is damaged")
    (listed,) = answers.jobs_overview([details], NOW_MS)["jobs"]
    for shown in (listed, answers.job(details, NOW_MS)):
        assert (shown["state"], shown["waiting-for"]) == ("RECONCILING", "its graph is damaged")
    assert answers.jobs([details])["jobs"] == [{"id": NEW, "status": "RECONCILING"}]
    assert answers.exceptions(details)["exceptionHistory"]["entries"]
