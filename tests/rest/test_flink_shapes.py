"""Every answer has the keys of Flink's, recorded from Flink 2.3.0 in ``flink_shapes.json``.

``MISSING`` and ``ADDED`` are the whole difference, with the reasons.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.rest.asgi import Answer, ask
from tests.rest.bench import NEW, OLD, Bench
from yarnflow.core.ids import TaskManagerId
from yarnflow.core.metrics import MetricScope, ScopeKind

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "flink_shapes.json").read_text())
TRIGGER = "1" * 32
V = f"/jobs/{NEW}/vertices/v1"
T = "/taskmanagers/h:container_1"
_NO_CHANGELOG = "Spark writes its changelog in another way; it has no such settings"
_OURS = "of Spark's queries, slots and restarts"

#: recorded answer, place of a key → why yarnflow's answer has not got it
MISSING: dict[tuple[str, str], str] = {
    ("job_checkpoints_config", "state_changelog_enabled"): _NO_CHANGELOG,
    ("job_checkpoints_config", "changelog_periodic_materialization_interval"): _NO_CHANGELOG,
    ("job_checkpoints_config", "changelog_storage"): _NO_CHANGELOG,
    **{
        (name, f"jobs[].{key}"): "of a job that ended under an earlier leader this is not known any more"
        for name in ("jobs_overview", "jobs_overview_after")
        for key in ("jobType", "schedulerType")
    },
    **{
        (name, "plan.nodes[].inputs"): "as in Flink, sources have none"
        for name in ("job", "job_canceled", "job_finished", "job_plan")
    },
}
#: recorded answer, place of a key → what Flink does not say
ADDED: dict[tuple[str, str], str] = {
    **{
        (name, key): _OURS
        for name in ("job", "job_canceled", "job_finished")
        for key in ("milestones", "queries", "restarts", "slots-allocated", "slots-required", "waiting-for")
    },
    **{(name, "jobs[].waiting-for"): _OURS for name in ("jobs_overview", "jobs_overview_after")},
    ("job_checkpoints", "directory"): "where the job keeps them",
    ("job_checkpoints", "kept_until_timestamp"): "a job that has nothing to do makes none",
    ("job_checkpoints_config", "retained"): "how many are kept",
    ("job_config", "execution-config.user-config.limit"): "a parameter of the job",
}
#: end of a place → why its value is null where Flink has a number
NULL = {
    "networkMemory": "Spark has no memory of that kind",
    "frameworkHeap": "the TaskManager's own process has no heap of Java's",
    "freeMemory": "not reported",
    **{
        f"metrics.{name}": "no metric says it here"
        for name in (
            *(f"{area}{part}" for area in ("heap", "nonHeap") for part in ("Used", "Committed", "Max")),
            *(f"{area}{part}" for area in ("direct", "mapped") for part in ("Count", "Used", "Max")),
            *(f"nettyShuffleMemory{part}" for part in ("Available", "Used", "Total")),
            *(f"nettyShuffleMemorySegments{part}" for part in ("Available", "Used", "Total")),
        )
    },
}


def begun(bench: Bench, path: str, finish: bool = False, failure: str = "", **body: Any) -> str:
    answer = ask(bench.app, "POST", path, {**body, "triggerId": TRIGGER})
    assert answer.status == 202
    if finish:
        bench.view.complete(TRIGGER, "" if "checkpoints" in path else "hdfs://n/sp", failure)
    return TRIGGER


def get(target: str) -> Callable[[Bench], Answer]:
    return lambda bench: ask(bench.app, "GET", target)


def send(method: str, target: str, **body: Any) -> Callable[[Bench], Answer]:
    return lambda bench: ask(bench.app, method, target, body)


def status(what: str, **how: Any) -> Callable[[Bench], Answer]:
    kind = "savepoints" if what == "stop" else what

    def asked(bench: Bench) -> Answer:
        return ask(bench.app, "GET", f"/jobs/{NEW}/{kind}/{begun(bench, f'/jobs/{NEW}/{what}', **how)}")

    return asked


def disposal(bench: Bench) -> Answer:
    bench.view.savepoints = {"/sp"}
    trigger = ask(bench.app, "POST", "/savepoint-disposal", {"savepoint-path": "/sp"}).json["request-id"]
    while (answer := bench.get(f"/savepoint-disposal/{trigger}"))["status"]["id"] != "COMPLETED":
        assert answer["operation"] is None
    return ask(bench.app, "GET", f"/savepoint-disposal/{trigger}")


#: recorded answer → the same request here
REQUESTS: Mapping[str, Callable[[Bench], Answer]] = {
    "cancel": send("PATCH", f"/jobs/{NEW}?mode=cancel"),
    "cancel_finished": send("PATCH", f"/jobs/{OLD}?mode=cancel"),
    "checkpoint_status_done": status("checkpoints", finish=True),
    "checkpoint_status_first": status("checkpoints"),
    "checkpoint_trigger": send("POST", f"/jobs/{NEW}/checkpoints", checkpointType="FULL"),
    "config": get("/config"),
    "error_bad_body": send("POST", f"/jobs/{NEW}/savepoints", targetDir=3),
    "error_bad_query": send("PATCH", f"/jobs/{NEW}?mode=nope"),
    "error_job_malformed": get("/jobs/zz"),
    "error_job_unknown": get(f"/jobs/{'0' * 31}1"),
    "error_path_unknown": get("/nothing"),
    "error_taskmanager_log_unknown": get(f"{T}/logs/none.log"),
    "error_taskmanager_unknown": get("/taskmanagers/none"),
    "error_unknown_trigger": get(f"/jobs/{NEW}/savepoints/{'0' * 31}1"),
    "error_vertex_unknown": get(f"/jobs/{NEW}/vertices/{'0' * 31}1"),
    "jars_empty": get("/jars"),
    "job": get(f"/jobs/{NEW}"),
    "job_accumulators": get(f"/jobs/{NEW}/accumulators"),
    "job_canceled": get(f"/jobs/{NEW}"),
    "job_checkpoints": get(f"/jobs/{NEW}/checkpoints"),
    "job_checkpoints_config": get(f"/jobs/{NEW}/checkpoints/config"),
    "job_config": get(f"/jobs/{NEW}/config"),
    "job_exceptions": get(f"/jobs/{NEW}/exceptions"),
    "job_execution_result_finished": get(f"/jobs/{OLD}/execution-result"),
    "job_execution_result_running": get(f"/jobs/{NEW}/execution-result"),
    "job_finished": get(f"/jobs/{NEW}"),
    "job_jobmanager_config": get(f"/jobs/{NEW}/jobmanager/config"),
    "job_metrics_get": get(f"/jobs/{NEW}/metrics?get=uptime,numRestarts"),
    "job_metrics_list": get(f"/jobs/{NEW}/metrics"),
    "job_plan": get(f"/jobs/{NEW}/plan"),
    "job_status": get(f"/jobs/{NEW}/status"),
    "jobmanager_config": get("/jobmanager/config"),
    "jobmanager_environment": get("/jobmanager/environment"),
    "jobmanager_logs": get("/jobmanager/logs"),
    "jobmanager_metrics_list": get("/jobmanager/metrics"),
    "jobs": get("/jobs"),
    "jobs_metrics_agg": get("/jobs/metrics?get=uptime&agg=min,max"),
    "jobs_overview": get("/jobs/overview"),
    "jobs_overview_after": get("/jobs/overview"),
    "overview": get("/overview"),
    "savepoint_bad_status": status("savepoints", finish=True, failure="no space"),
    "savepoint_bad_trigger": send(
        "POST", f"/jobs/{NEW}/savepoints", **{"target-directory": "file:///proc/nope"}
    ),
    "savepoint_disposal_status": disposal,
    "savepoint_disposal_trigger": send("POST", "/savepoint-disposal", **{"savepoint-path": "/sp"}),
    "savepoint_on_finished": send("POST", f"/jobs/{OLD}/savepoints", **{"target-directory": "/sp"}),
    "savepoint_status_done": status("savepoints", finish=True),
    "savepoint_status_first": status("savepoints"),
    "savepoint_trigger": send("POST", f"/jobs/{NEW}/savepoints", formatType="CANONICAL"),
    "stop_status": status("stop", finish=True),
    "stop_trigger": send("POST", f"/jobs/{NEW}/stop"),
    "taskmanager": get(T),
    "taskmanager_logs": get(f"{T}/logs"),
    "taskmanager_metrics_get": get(f"{T}/metrics?get=Status.JVM.CPU.Load"),
    "taskmanager_metrics_list": get(f"{T}/metrics"),
    "taskmanager_thread_dump": get(f"{T}/thread-dump"),
    "taskmanagers": get("/taskmanagers"),
    "taskmanagers_metrics_agg": get("/taskmanagers/metrics?get=Status.JVM.CPU.Load"),
    "vertex": get(V),
    "vertex_accumulators": get(f"{V}/accumulators"),
    "vertex_backpressure": get(f"{V}/backpressure"),
    "vertex_backpressure_second": get(f"{V}/backpressure"),
    "vertex_metrics_list": get(f"{V}/metrics"),
    "vertex_subtask": get(f"{V}/subtasks/0"),
    "vertex_subtask_attempt": get(f"{V}/subtasks/0/attempts/0"),
    "vertex_subtask_metrics": get(f"{V}/subtasks/metrics"),
    "vertex_subtask_metrics_agg": get(
        f"{V}/subtasks/metrics?get=numRecordsIn,numRecordsOut&agg=min,max,sum,avg"
    ),
    "vertex_subtasktimes": get(f"{V}/subtasktimes"),
    "vertex_taskmanagers": get(f"{V}/taskmanagers"),
    "vertex_watermarks": get(f"{V}/watermarks"),
}
#: recorded answer → status here, and why it is another one
OTHER_STATUS = {
    "error_taskmanager_log_unknown": (404, "Flink answers 500, as if it were the server's fault"),
    "error_taskmanager_unknown": (404, "Flink answers 500, as if it were the server's fault"),
}
#: recorded answer → why it is not compared
NO_REQUEST = {
    "job_resource_requirements": "Flink's default scheduler refuses to answer; yarnflow answers",
}


def bench() -> Bench:
    made = Bench(uploads=Path("/nonexistent"))
    job = MetricScope(ScopeKind.JOB, job_id=NEW)
    manager = MetricScope(ScopeKind.TASK_MANAGER, task_manager_id=TaskManagerId("h:container_1"))
    made.metrics.values[job] = {"uptime": 1, "numRestarts": 0}
    made.metrics.values[manager] = {"Status.JVM.CPU.Load": 0.5, "Status.JVM.GarbageCollector.G1.Count": 1}
    made.metrics.values[MetricScope(ScopeKind.JOB_MANAGER)] = {"taskSlotsTotal": 4}
    return made


def differences(recorded: Any, here: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """``(place, what)``: ``missing``, ``added`` or another type."""
    if isinstance(recorded, dict) and isinstance(here, dict):
        for key in sorted({*recorded, *here}):
            inner = f"{place}.{key}" if place else key
            if key not in here:
                yield inner, "missing"
            elif key not in recorded:
                yield inner, "added"
            else:
                yield from differences(recorded[key], here[key], inner)
    elif isinstance(recorded, list) and isinstance(here, list):
        # a part that is empty in either has no shape to compare
        if recorded and here:
            for item in here:
                yield from differences(recorded[0], item, f"{place}[]")
    elif recorded == "number" and here is None:
        yield place, "null"
    elif (said := kind(here)) != recorded and recorded != "null":
        yield place, f"{said} instead of {recorded if isinstance(recorded, str) else type(recorded).__name__}"


def kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float() | "NaN":
            return "number"
        case str():
            return "text"
    return type(value).__name__


def test_every_recorded_answer_is_compared() -> None:
    assert {*REQUESTS, *NO_REQUEST} == set(RECORDED)


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_shape(name: str) -> None:
    recorded = RECORDED[name]
    answer = REQUESTS[name](bench())
    assert answer.status == OTHER_STATUS.get(name, (recorded["status"], ""))[0], answer.body
    found = set(differences(recorded["shape"], answer.json))
    expected = {(place, "missing") for other, place in MISSING if other == name}
    expected |= {(place, "added") for other, place in ADDED if other == name}
    nulls = {(place, what) for place, what in found if what == "null" and place.endswith(tuple(NULL))}
    assert found - nulls == expected
