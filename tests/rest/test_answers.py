"""The shapes of Flink's answers, and the page."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.rest.asgi import ask
from tests.rest.bench import NEW, NOW_MS, OLD, Bench, subtask, vertex
from yarnflow.core.checkpoint.messages import JobCheckpoints, SourceProgress
from yarnflow.core.ids import VertexId
from yarnflow.core.job.description import JobDescription, PlanNode
from yarnflow.core.messages import ErrorInfo, FailureInfo, JobDetails, JobOverview
from yarnflow.core.metrics import MetricScope, ScopeKind
from yarnflow.core.states import ExecutionState as S
from yarnflow.core.states import JobStatus
from yarnflow.rest.answers.checkpoints import configuration
from yarnflow.rest.answers.jobs import plan_of
from yarnflow.rest.answers.vertices import vertex_status
from yarnflow.rest.handlers import dashboard
from yarnflow.rest.web import ROUTES

BENCH = Bench()


def test_overview() -> None:
    assert BENCH.get("/overview") == {
        "taskmanagers": 1, "slots-total": 4, "slots-available": 3,
        "jobs-running": 1, "jobs-finished": 0, "jobs-cancelled": 0, "jobs-failed": 1,
        "flink-version": "9.9", "flink-commit": "",
    }  # fmt: skip


def test_what_users_call_their_operators_is_no_html() -> None:
    """As in Flink, whose dashboard reads it as HTML."""
    node = PlanNode(VertexId("v"), 1, ('map: <i>a</i> & "b"', "C:\\d"))
    made = plan_of(JobDescription(NEW, "j", nodes=(node,)))
    assert made.nodes[0].description == (
        "map: &lt;i&gt;a&lt;/i&gt; &amp; &quot;b&quot;<br/>C:&#92;d<br/>"
    )


def test_leadership() -> None:
    assert BENCH.get("/jobmanager/leadership") == {
        "leader": {
            "id": "1ead", "address": "h:6123", "web-address": "http://h:8081", "epoch": 3, "since": 950_000,
        },
        "standbys": [
            {
                "id": "57a4d", "address": "g:6123", "web-address": "http://g:8081", "host": "g", "pid": 7,
                "application-id": "application_1_2",
            }
        ],
    }  # fmt: skip


def test_jobs() -> None:
    assert BENCH.get("/jobs") == {"jobs": [{"id": OLD, "status": "FAILED"}, {"id": NEW, "status": "RUNNING"}]}


def test_jobs_overview_has_the_newest_job_first() -> None:
    live, ended = BENCH.get("/jobs/overview")["jobs"]
    assert (live["jid"], live["name"], live["state"]) == (NEW, "flights", "RUNNING")
    assert (live["start-time"], live["end-time"], live["duration"]) == (960_000, -1, 40_000)
    assert live["tasks"]["total"] == 4
    assert {state for state, count in live["tasks"].items() if count} == {"total", "running", "scheduled"}
    assert live["waiting-for"] == "slots: 1 of 2"
    assert (ended["end-time"], ended["duration"], ended["last-modification"]) == (950_000, 50_000, 950_000)


def test_job() -> None:
    made = BENCH.get(f"/jobs/{NEW}")
    assert (made["state"], made["now"], made["duration"]) == ("RUNNING", NOW_MS, 40_000)
    assert made["maxParallelism"] == 128
    assert BENCH.get(f"/jobs/{OLD}")["maxParallelism"] == -1, "it ended under an earlier leader"
    assert set(made["timestamps"]) == {status.name for status in JobStatus} - {"RECOVERY_FAILED"}
    assert (made["timestamps"]["RUNNING"], made["timestamps"]["FAILED"]) == (970_000, 0)
    first, _second = made["vertices"]
    assert (first["status"], first["parallelism"], first["maxParallelism"]) == ("RUNNING", 2, 128)
    assert (first["tasks"]["RUNNING"], first["tasks"]["SCHEDULED"]) == (1, 1)
    assert (first["start-time"], first["end-time"], first["duration"]) == (910_000, -1, 90_000)
    assert made["status-counts"]["RUNNING"] == 2
    assert made["queries"][0]["batch-id"] == 4
    assert made["queries"][0]["sources"] == [
        {"description": "KafkaV2[Subscribe[t]]", "input-rows": 7, "behind": {"t-0": 15, "t-1": 0}}
    ]
    assert made["queries"][0]["operators"] == [
        {"name": "dedupe", "rows": 3, "bytes": 900, "rows-updated": 2, "rows-removed": 1, "partitions": 4}
    ]


def test_other_sources_are_behind_nothing() -> None:
    for offset in ('{"logOffset":5}', "17", "", "none", "null", "[]"):
        assert SourceProgress("x", end_offset=offset, latest_offset=offset).behind == {}
    new = SourceProgress("x", end_offset='{"t":{"0":5}}', latest_offset='{"t":{"0":4,"1":9}}')
    assert new.behind == {"t-0": 0}, "of a partition that was just made nothing is known"


def test_a_vertex_ends_with_its_last_subtask() -> None:
    (made,) = BENCH.get(f"/jobs/{OLD}")["vertices"]
    assert (made["status"], made["end-time"], made["duration"]) == ("FAILED", 920_000, 10_000)


def test_exceptions_have_the_newest_first() -> None:
    history = BENCH.get(f"/jobs/{OLD}/exceptions")["exceptionHistory"]
    assert history["truncated"] is False
    user, executor = history["entries"]
    assert (user["exceptionName"], user["timestamp"]) == ("USER_CODE", 940_000)
    assert user["stacktrace"] == "ValueError: <b>\nTraceback\n  <script>"
    # at a driver, which has no page
    assert (user["endpoint"], user["taskManagerId"]) == ("driver-1", None)
    assert (executor["taskManagerId"], executor["failureLabels"]["recovered"]) == ("tm-1", "true")


def test_task_managers() -> None:
    (made,) = BENCH.get("/taskmanagers")["taskmanagers"]
    assert (made["id"], made["path"]) == ("h:container_1", "h:1")
    assert (made["slotsNumber"], made["freeSlots"]) == (4, 3)
    assert made["timeSinceLastHeartbeat"] == 999_000
    assert made["memoryConfiguration"]["totalProcessMemory"] == 1728 * 1024 * 1024


def test_checkpoints() -> None:
    made = BENCH.get(f"/jobs/{NEW}/checkpoints")
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
    running, savepoint, failed, done, gone = BENCH.get(f"/jobs/{NEW}/checkpoints")["history"]
    assert (running["end_to_end_duration"], running["latest_ack_timestamp"]) == (1_000, -1)
    assert (savepoint["is_savepoint"], savepoint["checkpoint_type"]) == (True, "SYNC_SAVEPOINT")
    assert (savepoint["state_size"], savepoint["checkpointed_size"]) == (2_000, 5_000)
    assert savepoint["external_path"] == "hdfs://n/sp<" and savepoint["pause"] == 40
    assert (failed["failure_timestamp"], failed["failure_message"]) == (986_000, "<no>")
    assert (done["checkpoint_type"], done["discarded"], gone["discarded"]) == ("CHECKPOINT", False, True)
    assert done["queries"][0]["operators"][0]["rows"] == 10
    assert (done["num_subtasks"], done["num_acknowledged_subtasks"]) == (4, 4)
    assert (failed["num_subtasks"], failed["num_acknowledged_subtasks"]) == (4, 0)
    details = BENCH.get(f"/jobs/{NEW}/checkpoints/details/21")
    tasks = details.pop("tasks")
    assert details == {key: value for key, value in done.items() if key != "tasks"}
    # Flink's dashboard looks each vertex up
    assert {name: task["num_acknowledged_subtasks"] for name, task in tasks.items()} == {"v1": 2, "v2": 2}
    assert tasks["v1"]["state_size"] is None


def test_numbers_of_a_vertex_that_nobody_has_measured_are_null_but_there() -> None:
    """Flink's dashboard ends with one that is missing."""
    made = BENCH.get(f"/jobs/{NEW}/vertices/v2")["aggregated"]["metrics"]
    assert sorted(made) == [
        "accumulated-backpressured-time", "accumulated-busy-time", "accumulated-idle-time",
        "read-bytes", "read-records", "write-bytes", "write-records",
    ]  # fmt: skip
    assert set(made["read-bytes"].values()) == {None}


def test_checkpoints_of_a_job_without_any() -> None:
    made = BENCH.get(f"/jobs/{OLD}/checkpoints")
    assert made["history"] == [] and made["counts"]["total"] == 0
    assert made["latest"] == {"completed": None, "savepoint": None, "failed": None, "restored": None}
    # as Flink: there is no quantile of nothing
    assert made["summary"]["state_size"] == {
        "min": 0, "max": 0, "avg": 0, **dict.fromkeys(("p50", "p90", "p95", "p99", "p999"), "NaN")
    }  # fmt: skip


def test_a_job_that_this_leader_cannot_read_has_not_ended() -> None:
    bench = Bench()
    bench.view.change(NEW, JobStatus.RECOVERY_FAILED)
    del bench.view.descriptions[NEW]
    for job, said in ((NEW, "cannot be read by this leader"), (OLD, "ended under an earlier leader")):
        answer = ask(bench.app, "GET", f"/jobs/{job}/config")
        assert (answer.status, said in answer.error) == (404, True), answer.body


def test_checkpoint_config() -> None:
    made = BENCH.get(f"/jobs/{NEW}/checkpoints/config")
    assert (made["mode"], made["interval"], made["timeout"]) == ("exactly_once", 10_000, 600_000)
    assert made["externalization"] == {"enabled": True, "delete_on_cancellation": False}
    assert made["tolerable_failed_checkpoints"] == 2**31 - 1


@pytest.mark.parametrize("interval_ms, told", [(0, 0), (-1, 2**63 - 1)])
def test_a_checkpoint_of_every_batch_is_not_none(interval_ms: int, told: int) -> None:
    assert configuration(JobCheckpoints(NEW, interval_ms=interval_ms)).interval == told


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
    assert vertex_status(vertex(*states)) is whole


@pytest.mark.parametrize(
    "method, path, status, said",
    [
        ("GET", "/nothing", 404, "Unable to load requested file /nothing."),
        ("GET", "/jobs/overview/more", 404, "Unable to load"),
        ("GET", "/../secret", 404, "Unable to load"),
        ("GET", f"/jobs/{'c' * 32}", 404, "no job ccc"),
        ("GET", f"/jobs/{'c' * 32}/exceptions", 404, "no job ccc"),
        ("GET", f"/jobs/{'c' * 32}/checkpoints", 404, "no job ccc"),
        ("GET", "/jobs/zz/checkpoints/config", 400, 'path parameter (jobid) from value "zz"'),
        ("GET", f"/jobs/{NEW}/checkpoints/details/7", 404, "for checkpoint 7"),
        ("GET", f"/jobs/{NEW}/checkpoints/details/x", 400, "(checkpointid)"),
        ("GET", f"/jobs/{NEW}/exceptions?maxExceptions=-1", 400, "query parameter (maxExceptions)"),
        ("GET", f"/jobs/{NEW}/exceptions?failureLabelFilter=x", 400, "name:value"),
        ("GET", f"/jobs/{NEW}/vertices/v9", 404, "JobVertex v9 not found"),
        ("GET", f"/jobs/{NEW}/vertices/v1/subtasks/7", 404, "Subtask 7"),
        ("GET", f"/jobs/{NEW}/vertices/v1/subtasks/0/attempts/3", 404, "the current one is 0"),
        ("GET", "/taskmanagers/none", 404, "No TaskExecutor registered under none."),
        ("GET", "/taskmanagers/h:container_1/logs/none.log", 404, "no file none.log"),
        ("GET", f"/jobs/{OLD}/plan", 404, "earlier leader"),
        ("GET", "/jobs/metrics?agg=median", 400, "(agg)"),
        ("POST", "/jobs/overview", 405, "use GET, HEAD"),
        ("PUT", f"/jobs/{NEW}", 405, "use GET, HEAD, PATCH"),
        ("POST", "/nothing", 404, "Unable to load"),
        ("GET", "/jobs/" + "9" * 5000, 400, "(jobid)"),
        ("GET", "/jobmanager/profiler", 501, "no built-in profiler"),
        ("PUT", f"/jobs/{NEW}/resource-requirements", 501, "parallelism"),
    ],
)
def test_what_is_not_there(method: str, path: str, status: int, said: str) -> None:
    answer = ask(BENCH.app, method, path)
    assert answer.status == status
    assert said in answer.error


@pytest.mark.parametrize(
    "path",
    ["/jobs/overview/", "//jobs/overview", "/jobs/overview?x=1", "/v1/jobs/overview", "//v1//jobs/overview/"],
)
def test_forms_of_a_path(path: str) -> None:
    assert len(BENCH.get(path)["jobs"]) == 2


def test_ids_may_be_in_capitals() -> None:
    assert BENCH.get(f"/jobs/{NEW.upper()}/status") == {"status": "RUNNING"}


def test_a_state_that_flink_does_not_have_is_shown_as_the_nearest_one_of_its() -> None:
    overview = JobOverview(NEW, "job", JobStatus.RECOVERY_FAILED, 900_000, -1)
    failure = FailureInfo(900_000, ErrorInfo("JOB_UNREADABLE", "its graph is damaged"))
    bench = Bench()
    bench.view.details = [JobDetails(overview, 1, failures=(failure,), waiting_for="its graph is damaged")]
    (listed,) = bench.get("/jobs/overview")["jobs"]
    for shown in (listed, bench.get(f"/jobs/{NEW}")):
        assert (shown["state"], shown["waiting-for"]) == ("RECONCILING", "its graph is damaged")
    assert bench.get("/jobs")["jobs"] == [{"id": NEW, "status": "RECONCILING"}]
    assert bench.get(f"/jobs/{NEW}/exceptions")["exceptionHistory"]["entries"]


def test_exceptions_by_number_and_label() -> None:
    path = f"/jobs/{OLD}/exceptions"
    history = BENCH.get(f"{path}?maxExceptions=1")["exceptionHistory"]
    assert (len(history["entries"]), history["truncated"]) == (1, True)
    (only,) = BENCH.get(f"{path}?failureLabelFilter=recovered:true,level:TASKS")["exceptionHistory"][
        "entries"
    ]
    assert only["exceptionName"] == "EXECUTOR_LOST"
    assert BENCH.get(f"{path}?failureLabelFilter=level:MASTER")["exceptionHistory"]["entries"] == []


def test_what_is_not_measured_is_said_to_be_incomplete() -> None:
    first, second = BENCH.get(f"/jobs/{NEW}")["vertices"]
    assert (first["metrics"]["read-records"], first["metrics"]["read-records-complete"]) == (30, True)
    assert first["metrics"]["accumulated-busy-time"] == 16
    assert (second["metrics"]["read-records"], second["metrics"]["read-records-complete"]) == (0, False)
    assert second["metrics"]["accumulated-busy-time"] == "NaN"


def test_a_subtask_that_says_nothing_makes_the_sum_incomplete() -> None:
    bench = Bench()
    del bench.metrics.values[subtask(1)]
    metrics = bench.get(f"/jobs/{NEW}")["vertices"][0]["metrics"]
    assert (metrics["read-records"], metrics["read-records-complete"]) == (10, False)


def test_back_pressure() -> None:
    made = BENCH.get(f"/jobs/{NEW}/vertices/v1/backpressure")
    assert (made["status"], made["backpressureLevel"], made["end-timestamp"]) == ("ok", "high", NOW_MS)
    first, second = made["subtasks"]
    assert (first["ratio"], first["busyRatio"], second["backpressureLevel"]) == (0.6, 0.3, "ok")
    unknown = BENCH.get(f"/jobs/{NEW}/vertices/v2/backpressure")
    assert (unknown["status"], unknown["subtasks"]) == ("deprecated", None), "a number nobody has measured"


def test_subtasks_of_native_operators_have_the_watermark_of_the_query() -> None:
    bench = Bench()
    assert bench.get(f"/jobs/{NEW}/vertices/v2/watermarks") == [], "nobody has one"
    whole = MetricScope(ScopeKind.VERTEX, job_id=NEW, vertex_id=VertexId("v2"))
    bench.metrics.values[whole] = {"currentInputWatermark": 970_000}
    assert bench.get(f"/jobs/{NEW}/vertices/v2/watermarks") == [
        {"id": f"{index}.currentInputWatermark", "value": "970000"} for index in (0, 1)
    ]


def test_watermarks_and_subtasks() -> None:
    assert BENCH.get(f"/jobs/{NEW}/vertices/v1/watermarks")[1] == {
        "id": "1.currentInputWatermark", "value": "980000"
    }  # fmt: skip
    made = BENCH.get(f"/jobs/{NEW}/vertices/v1/subtasks/0")
    assert (made["endpoint"], made["taskmanager-id"]) == ("h:1", "h:container_1")
    assert made["status-duration"]["DEPLOYING"] == 10_000
    assert made["status-duration"]["RUNNING"] == 80_000
    assert made["status-duration"]["SCHEDULED"] == -1, "it never was"
    whole = BENCH.get(f"/jobs/{NEW}/vertices/v1")
    assert whole["aggregated"]["metrics"]["read-records"] == {
        "min": 10, "max": 20, "avg": 15, "sum": 30, "median": 20, "p25": 10, "p75": 20, "p95": 20
    }  # fmt: skip


def test_metrics() -> None:
    path = f"/jobs/{NEW}/vertices/v1/subtasks/metrics"
    assert {"id": "numRecordsIn"} in BENCH.get(path)
    assert BENCH.get(f"{path}?get=numRecordsIn,none&agg=min,max") == [
        {"id": "numRecordsIn", "min": 10.0, "max": 20.0}
    ]
    assert BENCH.get(f"{path}?get=numRecordsIn&subtasks=1-5")[0]["sum"] == 20.0
    (made,) = BENCH.get(f"{path}?get=numRecordsIn")
    assert (made["avg"], round(made["skew"], 2)) == (15.0, 33.33)
    assert BENCH.get(f"/jobs/{NEW}/vertices/v1/metrics?get=1.numRecordsOut") == [
        {"id": "1.numRecordsOut", "value": "6"}
    ]
    for path in ("/jobs/metrics", "/jobmanager/metrics", "/taskmanagers/metrics?get=x"):
        assert BENCH.get(path) == []


def test_a_text_is_no_number_to_add() -> None:
    bench = Bench()
    scopes = [MetricScope(ScopeKind.JOB, job_id=job_id) for job_id in (OLD, NEW)]
    bench.metrics.values = {
        scopes[0]: {"path": "hdfs://a", "n": 1},
        scopes[1]: {"path": "hdfs://b", "n": 2.5},
    }
    assert bench.get("/jobs/metrics?get=path,n&agg=sum") == [{"id": "n", "sum": 3.5}]
    assert bench.get(f"/jobs/{NEW}/metrics?get=path") == [{"id": "path", "value": "hdfs://b"}]


def test_what_a_job_is() -> None:
    made = BENCH.get(f"/jobs/{NEW}/plan")["plan"]
    assert [node["id"] for node in made["nodes"]] == ["v2", "v1"]
    assert made["nodes"][0]["inputs"][0] == {
        "id": "v1", "num": 0, "exchange": "blocking", "ship_strategy": "HASH"
    }  # fmt: skip
    assert "inputs" not in made["nodes"][1]
    assert BENCH.get(f"/jobs/{NEW}/config")["execution-config"]["user-config"] == {"limit": "3"}
    assert BENCH.get(f"/jobs/{OLD}")["plan"]["nodes"] == [], "it is of an earlier leader"
    assert "job-type" not in BENCH.get(f"/jobs/{OLD}"), "nobody knows it any more"


def test_how_a_job_ended() -> None:
    assert BENCH.get(f"/jobs/{NEW}/execution-result") == {"status": {"id": "IN_PROGRESS"}}
    result = BENCH.get(f"/jobs/{OLD}/execution-result")["job-execution-result"]
    assert (result["application-status"], result["net-runtime"]) == ("FAILED", 50_000)


def test_logs_and_thread_dumps() -> None:
    path = "/taskmanagers/h:container_1"
    assert BENCH.get(f"{path}/logs")["logs"][0] == {"name": "taskmanager.log", "size": 10, "mtime": 0}
    for target, content in (
        ("/logs/taskmanager.log", b"0123456789"), ("/log", b"0123456789"), ("/stdout", b"printed")
    ):  # fmt: skip
        answer = ask(BENCH.app, "GET", path + target)
        assert (answer.status, answer.body) == (200, content)
        assert answer.headers["content-type"].startswith("text/plain")
    assert BENCH.get(f"{path}/thread-dump")["threadInfos"][0]["threadName"] == "MainThread"
    assert ask(BENCH.app, "GET", "/jobmanager/log").body == b"jobmanager's"
    assert BENCH.get(f"/jobs/{NEW}/driver/thread-dump")["threadInfos"][0]["threadName"] == "MainThread"
    assert "has ended (FAILED)" in BENCH.get(f"/jobs/{OLD}/driver/thread-dump", 404)["errors"][0]


@pytest.mark.parametrize(
    "asked, status, content, where",
    [
        ("bytes=2-4", 206, b"234", "bytes 2-4/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-3", 206, b"789", "bytes 7-9/10"),
        ("bytes=8-100", 206, b"89", "bytes 8-9/10"),
        ("bytes=10-", 416, b"", ""),
        ("bytes=4-2", 416, b"", ""),
        ("bytes=-0", 416, b"", ""),
        ("lines=1-2", 200, b"0123456789", ""),
    ],
)
def test_ranges_of_a_file(asked: str, status: int, content: bytes, where: str) -> None:
    answer = ask(BENCH.app, "GET", "/taskmanagers/h:container_1/log", headers={"range": asked})
    assert answer.status == status
    if status != 416:
        assert (answer.body, answer.headers.get("content-range", "")) == (content, where)


def test_half_a_surrogate_is_shown_all_the_same() -> None:
    bench = Bench()
    bench.view.executor.logs["a\udc80.log"] = b""
    assert bench.get("/taskmanagers/h:container_1/logs")["logs"][0]["name"] == "a\udc80.log"


def test_options_and_environment() -> None:
    assert BENCH.get("/jobmanager/config") == [
        {"key": "a.b", "value": "1"},
        {"key": "c.secret", "value": "******"},
    ]
    assert BENCH.get(f"/jobs/{NEW}/jobmanager/config") == BENCH.get("/jobmanager/config")
    assert "Python" in BENCH.get("/jobmanager/environment")["jvm"]["version"]
    assert BENCH.get("/config")["features"]["web-cancel"] is True


def test_resource_requirements() -> None:
    assert BENCH.get(f"/jobs/{NEW}/resource-requirements")["v1"] == {
        "parallelism": {"lowerBound": 2, "upperBound": 2}
    }


def test_the_dashboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index.html").write_text("<!doctype html>")
    (tmp_path / "app.js").write_text("let a")
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "api.js").write_text("let b")
    (tmp_path.parent / "outside.js").write_text("secret")
    monkeypatch.setattr(dashboard, "FOLDER", tmp_path)
    index = ask(BENCH.app, "GET", "/")
    assert (index.status, index.body) == (200, b"<!doctype html>")
    assert "script-src 'self'" in index.headers["content-security-policy"]
    script = ask(BENCH.app, "GET", "/dashboard/app.js")
    assert (script.status, script.headers["content-type"]) == (200, "text/javascript; charset=UTF-8")
    part = ask(BENCH.app, "GET", "/dashboard/core/api.js")
    assert (part.status, part.body) == (200, b"let b")
    outside = ("..", "%2e%2e%2foutside.js", "..%2foutside.js", "../outside.js")
    for name in ("none.js", "core/none.js", "core", *outside):
        assert ask(BENCH.app, "GET", f"/dashboard/{name}").status in (400, 404)


@pytest.mark.parametrize("method", ["GET", "POST", "PATCH", "PUT", "DELETE"])
@pytest.mark.parametrize(
    "headers",
    [
        {"host": "["},
        {"host": ""},
        {"host": "a b", "origin": "http://["},
        {"content-length": "9" * 5_000},
        {"content-length": "-1"},
        {"range": "bytes=" + "9" * 5_000 + "-"},
        {"last-event-id": "9" * 5_000},
        {"authorization": "Bearer"},
    ],
)
def test_headers_that_make_no_sense_are_no_fault_of_the_server(method: str, headers: dict[str, str]) -> None:
    bench = Bench()
    for path in ("/overview", f"/jobs/{NEW}", "/taskmanagers/h:container_1/log", "/cluster", "/nothing"):
        assert ask(bench.app, method, path, headers=headers).status not in (0, 500), path


def test_each_job_is_an_application() -> None:
    first, second = BENCH.get("/applications/overview")["applications"]
    assert (first["id"], first["status"], first["jobs"]) == (NEW, "RUNNING", {"RUNNING": 1})
    assert (second["status"], second["duration"]) == ("FAILED", 50_000)
    made = BENCH.get(f"/applications/{NEW}")
    assert [job["jid"] for job in made["jobs"]] == [NEW]
    assert (made["timestamps"]["CREATED"], made["timestamps"]["RUNNING"]) == (960_000, 970_000)
    assert made["timestamps"]["FAILED"] == 0
    newest, _ = BENCH.get(f"/applications/{OLD}/exceptions")["exceptionHistory"]["entries"]
    assert (newest["exceptionName"], newest["jobId"]) == ("USER_CODE", OLD)
    assert BENCH.get(f"/applications/{NEW}/jobmanager/config") == BENCH.get("/jobmanager/config")
    bench = Bench()
    assert ask(bench.app, "POST", f"/applications/{NEW}/cancel").status == 202
    assert bench.view.canceled == [NEW]
    assert "Application ccc" in ask(bench.app, "GET", f"/applications/{'c' * 32}").error


def test_a_bug_is_not_shown() -> None:
    bench = Bench()
    bench.view.managers = None  # type: ignore[assignment]
    answer = ask(bench.app, "GET", "/taskmanagers")
    assert answer.status == 500 and "NoneType" not in answer.error


def test_the_document_names_every_route() -> None:
    made = BENCH.get("/openapi.json")
    assert made["openapi"] == "3.1.0"
    named = {(method.upper(), path) for path, methods in made["paths"].items() for method in methods}
    assert named == {(route.method, route.template) for route in ROUTES}
    assert msgspec.json.encode(made)
