"""What is kept of a job, and that the history server answers as the JobManager did."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rest.bench import CHECKPOINTS, DESCRIPTION, ENDED, NEW, OLD, Bench
from tests.rest.history.bench import ARCHIVES, HistoryBench, recorder
from yarnflow.core.job.description import EventLog
from yarnflow.core.metrics import MetricScope, ScopeKind
from yarnflow.errors import JobNotFound
from yarnflow.rest.framework.route import Route
from yarnflow.rest.history.contents import OF_APPLICATIONS, OF_JOBS, OF_PARTS, archived_routes
from yarnflow.rest.history.form import MAX_ARCHIVE_BYTES, Owner, decode
from yarnflow.rest.history.recorder import MAX_WRITTEN_BYTES, Recorder

#: all that is said of the job of the bench and its parts
PATHS = [
    *(path.replace(":jobid", NEW) for path in OF_JOBS),
    *(
        path.replace(":jobid", NEW).replace(":vertexid", "v1").replace(":subtaskindex", "1")
        .replace(":attempt", "0").replace(":checkpointid", "21")
        for path in OF_PARTS
    ),
    f"/jobs/{NEW}/vertices/v2",
]  # fmt: skip


@pytest.fixture
def bench() -> Bench:
    """The cluster whose jobs are archived."""
    made = Bench()
    log = EventLog("hdfs://n/logs/", True, "http://spark:18080", ("app-1", "app-2"))
    made.view.descriptions[NEW] = replace(DESCRIPTION, event_log=log)
    scope = MetricScope(ScopeKind.JOB, job_id=NEW)
    made.metrics.values[scope] = {"numRestarts": 3, "lastCheckpointPath": "x"}
    return made


@pytest.fixture
def history(bench: Bench, tmp_path: Path) -> HistoryBench:
    """A history server with the archive of a job."""
    made = HistoryBench(tmp_path)
    made.put(Owner("jobs", NEW), recorder(bench).job(NEW))
    cluster = f"{ARCHIVES}/{'c' * 32}/applications/{NEW}"
    made.files.make_directory(f"{cluster}/jobs")
    made.files.write(f"{cluster}/application-summary", recorder(bench).application(NEW))
    made.fetcher.refresh()
    return made


@pytest.mark.parametrize("path", PATHS)
def test_an_answer_is_what_the_job_manager_said(path: str, bench: Bench, history: HistoryBench) -> None:
    assert history.get(path) == bench.get(path)


@pytest.mark.parametrize("path", [path.replace(":applicationid", NEW) for path in OF_APPLICATIONS])
def test_the_application_is_kept_too(path: str, bench: Bench, history: HistoryBench) -> None:
    assert history.get(path) == bench.get(path)
    (only,) = history.get("/applications/overview")["applications"]
    assert only in bench.get("/applications/overview")["applications"]


@pytest.mark.parametrize(
    "query",
    [
        f"/jobs/{NEW}/metrics?get=numRestarts,lastCheckpointPath",
        f"/jobs/{NEW}/vertices/v1/metrics?get=1.numRecordsIn,0.numRecordsOut",
        f"/jobs/{NEW}/vertices/v1/subtasks/1/metrics",
        f"/jobs/{NEW}/vertices/v1/subtasks/1/metrics?get=numRecordsIn",
        f"/jobs/{NEW}/vertices/v1/subtasks/metrics",
        f"/jobs/{NEW}/vertices/v1/subtasks/metrics?get=numRecordsIn&agg=min,sum",
        f"/jobs/{NEW}/vertices/v1/subtasks/metrics?get=numRecordsIn&subtasks=0",
    ],
)
def test_metrics_can_be_asked_for_as_before(query: str, bench: Bench, history: HistoryBench) -> None:
    assert history.get(query) == bench.get(query)
    assert history.get(query) != []


def test_overviews_are_of_all_jobs(bench: Bench, history: HistoryBench) -> None:
    history.put(Owner("jobs", OLD), recorder(bench).job(OLD))
    history.fetcher.refresh()
    assert history.get("/jobs/overview") == bench.get("/jobs/overview"), "the newest first"
    assert history.get("/jobs") == bench.get("/jobs")
    counts = history.get("/overview")
    assert (counts["jobs-failed"], counts["jobs-running"], counts["taskmanagers"]) == (1, 0, 0)


def test_what_is_not_known_is_not_kept(bench: Bench, history: HistoryBench) -> None:
    """A job that ended under an earlier leader has no plan any more."""
    history.put(Owner("jobs", OLD), recorder(bench).job(OLD))
    history.fetcher.refresh()
    assert "does not have" in history.get(f"/jobs/{OLD}/config", 404)["errors"][0]
    assert history.get(f"/jobs/{OLD}/exceptions") == bench.get(f"/jobs/{OLD}/exceptions")


def test_where_the_logs_are(history: HistoryBench) -> None:
    logs = history.get(f"/jobs/{NEW}/logs")
    assert [each["id"] for each in logs["taskmanagers"]] == ["h:container_1"]
    assert logs["spark-event-logs"][1] == {
        "application-id": "app-2",
        "path": "hdfs://n/logs/eventlog_v2_app-2",
        "url": "http://spark:18080/history/app-2/",
    }
    assert history.get(f"/jobs/{NEW}/jobmanager/log-url") == {"url": f"http://logs/{NEW}"}
    assert history.get(f"/jobs/{NEW}/taskmanagers/tm-1/log-url") == {"url": f"http://logs/{NEW}/tm-1"}


def test_an_archive_is_a_list_of_paths_with_texts_of_json(bench: Bench) -> None:
    entries = json.loads(recorder(bench).job(NEW))["archive"]
    assert {frozenset(entry) for entry in entries} == {frozenset({"path", "json"})}
    assert entries[0]["path"] == "/jobs/overview"
    assert all(isinstance(json.loads(entry["json"]), (dict, list)) for entry in entries)


def test_an_overview_has_only_what_flinks_history_server_knows(bench: Bench) -> None:
    """It refuses all jobs for a key of one that it does not know."""
    entry = json.loads(recorder(bench).job(OLD))["archive"][0]
    (summary,) = json.loads(entry["json"])["jobs"]
    assert set(summary) <= {
        "jid", "name", "jobType", "schedulerType", "start-time", "end-time", "duration", "state",
        "last-modification", "tasks", "pending-operators",
    }  # fmt: skip


def test_an_archive_is_of_a_bounded_length(bench: Bench) -> None:
    whole = recorder(bench).job(NEW)
    size = len(whole) * 3 // 4
    made = Recorder(bench.cluster, size).job(NEW)
    assert len(made) <= size
    kept = decode(made, Owner("jobs", NEW)).answers
    assert f"/jobs/{NEW}/plan" in kept and f"/jobs/{NEW}/vertices/v1" in kept
    assert f"/jobs/{NEW}/vertices/v1/subtasks/0/attempts/0/accumulators" not in kept
    assert MAX_WRITTEN_BYTES < MAX_ARCHIVE_BYTES


def test_a_job_that_is_forgotten_has_no_archive(bench: Bench) -> None:
    bench.view.details = [ENDED]
    with pytest.raises(JobNotFound):
        recorder(bench).job(NEW)


def test_every_kept_path_changes_nothing() -> None:
    routes: tuple[Route, ...] = archived_routes((*OF_JOBS, *OF_PARTS, *OF_APPLICATIONS))
    assert not any(route.writes for route in routes)


def test_checkpoints_of_the_bench_are_all_kept(history: HistoryBench) -> None:
    for number in (info.checkpoint_id for info in CHECKPOINTS.history):
        assert history.get(f"/jobs/{NEW}/checkpoints/details/{number}")["id"] == number
