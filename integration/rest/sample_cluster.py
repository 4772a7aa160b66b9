"""A cluster that is not there, in the shapes of REST's answers: what the dashboard's tests look at.

Values move with the clock.  Every text a job can choose is markup that would run if it were taken for such.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from integration.rest.sample_checkpoints import (
    checkpoint,
    checkpoint_configuration,
    checkpoints,
    no_checkpoints,
)
from integration.rest.sample_metrics import JOB_METRICS, PROCESS_METRICS, SUBTASK_METRICS, metrics
from integration.rest.sample_processes import (
    environment,
    leadership,
    log_list,
    options,
    task_manager,
    threads,
)
from integration.rest.sample_values import (
    CANCELED,
    CREATED,
    FAILED,
    FINISHED,
    HOSTILE,
    MIB,
    RESTARTING,
    RUNNING,
    VERTICES,
    now_ms,
    vertex_id,
)

JOB_STATES: Final = (
    *("INITIALIZING", "CREATED", "RUNNING", "FAILING", "FAILED", "CANCELLING", "CANCELED", "FINISHED"),
    *("RESTARTING", "SUSPENDED", "RECONCILING"),
)
TASK_STATES: Final = (
    *("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED", "CANCELING", "CANCELED"),
    *("FAILED", "RECONCILING"),
)
TRACEBACK: Final = """USER_CODE_FAILED: ValueError: invalid literal for int() with base 10: 'NA'
org.apache.spark.SparkException: Job aborted due to stage failure
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2844)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/opt/spark/python/worker.py", line 1830, in main
    process()
  File "/srv/jobs/flights.py", line 41, in delay_of
    return int(row["dep_delay"])
ValueError: invalid literal for int() with base 10: 'NA'

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:572)
\t... 12 more"""


class SampleCluster:
    """Answers ``GET`` as a JobManager with six jobs and three TaskManagers does.

    Parameters
    ----------
    empty : bool
        Nothing runs and nothing ever did.
    """

    def __init__(self, empty: bool = False) -> None:
        self.empty = empty
        self.features = {"web-submit": True, "web-cancel": True, "web-rescale": False, "web-history": False}
        self.started_ms = now_ms() - 5_025_000
        self.states = {
            RUNNING: "RUNNING",
            RESTARTING: "RESTARTING",
            CREATED: "CREATED",
            FAILED: "FAILED",
            FINISHED: "FINISHED",
            CANCELED: "CANCELED",
        }
        self.names = {
            RUNNING: "delays-per-airport",
            RESTARTING: f"clicks {HOSTILE}",
            CREATED: "waiting-for-slots",
            FAILED: "import",
            FINISHED: "backfill-2025",
            CANCELED: "trial",
        }
        self.jars: list[dict[str, Any]] = []
        self.log_lines = [
            f"2026-11-26 10:{minute:02}:{second:02},000 INFO  jobmaster - batch {minute * 60 + second}"
            for minute in range(3)
            for second in range(60)
        ]
        self.log_lines[-2] = "2026-11-26 10:02:58,000 WARN  jobmaster - a heartbeat is late"
        self.log_lines[-1] = f"2026-11-26 10:02:59,000 ERROR jobmaster - {HOSTILE}"
        jobs, vertices = r"/jobs/(\w{32})", r"/jobs/(\w{32})/vertices/(\w{32})"
        task_manager = r"/taskmanagers/([^/]+)"
        self._routes: Sequence[tuple[str, Callable[..., Any]]] = (
            ("/config", self._config),
            ("/overview", self._overview),
            ("/jobs/overview", self._jobs_overview),
            ("/jars", lambda: {"address": "", "files": self.jars}),
            (jobs, self._job),
            (f"{jobs}/plan", lambda job: {"plan": self._plan(job)}),
            (f"{jobs}/config", self._job_config),
            (f"{jobs}/jobmanager/config", lambda job: options()),
            (f"{jobs}/exceptions", self._exceptions),
            (f"{jobs}/checkpoints", self._checkpoints),
            (f"{jobs}/checkpoints/config", self._checkpoint_configuration),
            (f"{jobs}/checkpoints/details/(\\d+)", self._checkpoint),
            (f"{jobs}/metrics", lambda job: (JOB_METRICS, job)),
            (vertices, self._vertex),
            (f"{vertices}/jm-operator-metrics", lambda job, vertex: ((), job)),
            (f"{vertices}/subtasktimes", self._subtask_times),
            (f"{vertices}/backpressure", self._back_pressure),
            (f"{vertices}/watermarks", self._watermarks),
            (f"{vertices}/taskmanagers", self._vertex_task_managers),
            (
                f"{vertices}/accumulators",
                lambda job, vertex: {
                    "id": vertex,
                    "user-accumulators": [{"name": HOSTILE, "type": "IntCounter", "value": "17"}],
                },
            ),
            (f"{vertices}/subtasks/metrics", lambda job, vertex: (SUBTASK_METRICS, vertex)),
            ("/taskmanagers", lambda: {"taskmanagers": self._task_managers()}),
            (task_manager, self._task_manager),
            (f"(?:{task_manager}|/jobmanager)/metrics", lambda process: (PROCESS_METRICS, process)),
            (f"(?:{task_manager}|/jobmanager)/logs", lambda process: log_list(self.started_ms)),
            (f"(?:{task_manager}|/jobmanager)/thread-dump", lambda process: {"threadInfos": threads()}),
            ("/jobmanager/config", options),
            ("/jobmanager/environment", environment),
            ("/jobmanager/leadership", lambda: leadership(self.started_ms, not self.empty)),
        )

    def answer(self, path: str, query: Mapping[str, str]) -> Any:
        """Raises KeyError where there is nothing."""
        for pattern, handler in self._routes:
            if found := re.fullmatch(pattern, path):
                answer = handler(*found.groups())
                if isinstance(answer, tuple):
                    names, owner = answer
                    return metrics(names, owner, query)
                return answer
        raise KeyError(path)

    def log(self, path: str) -> str | None:
        """The content of a file of logs, None where ``path`` is none."""
        if not re.fullmatch(r"(?:/taskmanagers/[^/]+|/jobmanager)/(?:logs/[^/]+|log|stdout)", path):
            return None
        return "".join(f"{line}\n" for line in self.log_lines)

    def _job_ids(self) -> Sequence[str]:
        return () if self.empty else tuple(self.states)

    def _known(self, job: str) -> str:
        if job not in self._job_ids():
            raise KeyError(f"Job {job} not found")
        return self.states[job]

    def _config(self) -> dict[str, Any]:
        return {
            "refresh-interval": 500,
            "timezone-name": "Coordinated Universal Time",
            "timezone-offset": 0,
            "flink-version": "0.1.0",
            "flink-revision": "",
            "features": self.features,
        }

    def _overview(self) -> dict[str, Any]:
        states = [self.states[job] for job in self._job_ids()]
        return {
            "taskmanagers": len(self._task_managers()),
            "slots-total": 0 if self.empty else 12,
            "slots-available": 0 if self.empty else 5,
            "jobs-running": len(states) and 3,
            "jobs-finished": states.count("FINISHED"),
            "jobs-cancelled": states.count("CANCELED"),
            "jobs-failed": states.count("FAILED"),
            "flink-version": "0.1.0",
            "flink-commit": "",
        }

    def _jobs_overview(self) -> dict[str, Any]:
        return {"jobs": [self._head(job) for job in self._job_ids()]}

    def _head(self, job: str) -> dict[str, Any]:
        state = self.states[job]
        over = state in ("FAILED", "FINISHED", "CANCELED")
        end = self.started_ms + 3_600_000 if over else -1
        tasks = sum(vertex[1] for vertex in VERTICES)
        task_state = _task_state(state)
        return {
            "jid": job,
            "name": self.names[job],
            "jobType": "STREAMING",
            "schedulerType": "Default",
            "start-time": self.started_ms,
            "end-time": end,
            "duration": (end if over else now_ms()) - self.started_ms,
            "state": state,
            "last-modification": self.started_ms + 4000,
            "tasks": {"total": tasks} | {name.lower(): tasks * (name == task_state) for name in TASK_STATES},
            "pending-operators": 0,
            "waiting-for": "4 slots; 2 of 6 are free" if state == "CREATED" else "",
        }

    def _job(self, job: str) -> dict[str, Any]:
        self._known(job)
        head = self._head(job)
        times = dict.fromkeys(JOB_STATES, 0) | {
            "INITIALIZING": self.started_ms,
            "CREATED": self.started_ms + 300,
            "RUNNING": self.started_ms + 1_204_000,
            head["state"]: self.started_ms + 1_204_000,
            "RESTARTING": self.started_ms + 1_180_000,
        }
        if head["end-time"] > 0:
            times[head["state"]] = head["end-time"]
        vertices = [self._vertex_summary(job, number) for number in range(len(VERTICES))]
        return {
            "jid": job,
            "name": head["name"],
            "isStoppable": False,
            "state": head["state"],
            "job-type": "STREAMING",
            "schedulerType": "Default",
            "start-time": head["start-time"],
            "end-time": head["end-time"],
            "duration": head["duration"],
            "maxParallelism": -1,
            "now": now_ms(),
            "timestamps": times,
            "vertices": vertices,
            "status-counts": dict.fromkeys(TASK_STATES, 0),
            "plan": self._plan(job),
            "pending-operators": 0,
            "waiting-for": head["waiting-for"],
            "restarts": 2 if job == RUNNING else 0,
            "slots-allocated": 4,
            "slots-required": 4,
            "queries": self._queries() if job == RUNNING else [],
        }

    def _vertex_summary(self, job: str, number: int) -> dict[str, Any]:
        name, parallelism, _, _, inputs = VERTICES[number]
        state = _task_state(self.states[job])
        return {
            "id": vertex_id(number),
            "slotSharingGroupId": "0" * 32,
            "name": name,
            "maxParallelism": 128,
            "parallelism": parallelism,
            "status": state,
            "start-time": self.started_ms + 1000,
            "end-time": -1,
            "duration": now_ms() - self.started_ms - 1000,
            "tasks": {each: parallelism * (each == state) for each in TASK_STATES},
            "metrics": _counts(self._records() // (1 + number), bool(inputs)),
        }

    def _records(self) -> int:
        return (now_ms() - self.started_ms) * 41

    def _plan(self, job: str) -> dict[str, Any]:
        nodes = [
            {
                "id": vertex_id(number),
                "parallelism": parallelism,
                "operator": "",
                "operator_strategy": "",
                "description": f"{name.replace('<', '&lt;')}<br/>+- second operator<br/>",
                "optimizer_properties": {},
            }
            | (
                {
                    "inputs": [
                        {
                            "id": vertex_id(other),
                            "num": place,
                            "exchange": "pipelined_bounded",
                            "ship_strategy": "HASH" if number == 3 else "FORWARD",
                        }
                        for place, other in enumerate(inputs)
                    ]
                }
                if inputs
                else {}
            )
            for number, (name, parallelism, _, _, inputs) in enumerate(VERTICES)
        ]
        return {"jid": job, "name": self.names[job], "type": "STREAMING", "nodes": nodes[::-1]}

    def _queries(self) -> list[dict[str, Any]]:
        batch = (now_ms() - self.started_ms) // 2000
        return [
            {
                "name": "main",
                "batch-id": batch,
                "batch-duration": 640 + batch % 7 * 55,
                "input-rows": self._records(),
                "output-rows": self._records() // 9,
                "watermark": now_ms() - 42_000,
                "input-rows-per-second": 40_950.5,
                "processed-rows-per-second": 61_221.0,
                "state-rows": 48_211,
                "state-bytes": 31 * MIB,
                "durations": {
                    "triggerExecution": 655,
                    "addBatch": 500,
                    "commitOffsets": 61,
                    "walCommit": 55,
                    "queryPlanning": 24,
                    "latestOffset": 12,
                    "getBatch": 3,
                },
                "sources": [
                    {
                        "description": "KafkaV2[Subscribe[flights]]",
                        "input-rows": 81_900,
                        "behind": {"flights-0": 12, "flights-1": 4011, "flights-2": 0},
                    },
                    {"description": f"FileStreamSource[hdfs://nn/{HOSTILE}]", "input-rows": 0, "behind": {}},
                ],
                "operators": [
                    {
                        "name": "transformWithState",
                        "rows": 48_211,
                        "bytes": 31 * MIB,
                        "rows-updated": 512,
                        "rows-removed": 20,
                        "partitions": 128,
                    }
                ],
            }
        ]

    def _job_config(self, job: str) -> dict[str, Any]:
        self._known(job)
        return {
            "jid": job,
            "name": self.names[job],
            "execution-config": {
                "restart-strategy": "exponential-delay",
                "job-parallelism": 4,
                "object-reuse-mode": False,
                "user-config": {"threshold": HOSTILE, "region": "eu"},
            },
        }

    def _exceptions(self, job: str) -> dict[str, Any]:
        state = self._known(job)
        entries = []
        if state in ("FAILED", "RESTARTING") or job == RUNNING:
            entries = [
                _exception("USER_CODE_FAILED", TRACEBACK, now_ms() - 60_000, state != "FAILED"),
                _exception(
                    "TASK_MANAGER_LOST",
                    f"TaskManager tm-2 is lost: no heartbeat for 50 s {HOSTILE}",
                    now_ms() - 900_000,
                    True,
                ),
            ]
        return {"exceptionHistory": {"entries": entries, "truncated": bool(entries)}}

    def _checkpoints(self, job: str) -> dict[str, Any]:
        self._known(job)
        return checkpoints(self.started_ms) if job == RUNNING else no_checkpoints()

    def _checkpoint(self, job: str, number: str) -> dict[str, Any]:
        self._known(job)
        if not 51 < int(number) < 62:
            raise KeyError(f"Checkpoint {number} is not known (any more).")
        return checkpoint(int(number))

    def _checkpoint_configuration(self, job: str) -> dict[str, Any]:
        self._known(job)
        return checkpoint_configuration()

    def _vertex(self, job: str, vertex: str) -> dict[str, Any]:
        number = self._vertex_number(job, vertex)
        name, parallelism, _, _, inputs = VERTICES[number]
        state = _task_state(self.states[job])
        subtasks = [
            {
                "subtask": subtask,
                "status": state,
                "attempt": 1,
                "endpoint": f"worker-{subtask % 3}:41001",
                "start-time": self.started_ms,
                "end-time": -1,
                "duration": now_ms() - self.started_ms,
                "metrics": _counts(self._records() // (4 + subtask), bool(inputs)),
                "taskmanager-id": f"tm-{subtask % 3}",
                "status-duration": {},
                "start_time": self.started_ms,
            }
            for subtask in range(parallelism)
        ]
        return {
            "id": vertex,
            "name": name,
            "parallelism": parallelism,
            "maxParallelism": 128,
            "now": now_ms(),
            "subtasks": subtasks,
            "aggregated": {},
        }

    def _vertex_number(self, job: str, vertex: str) -> int:
        self._known(job)
        for number in range(len(VERTICES)):
            if vertex_id(number) == vertex:
                return number
        raise KeyError(f"JobVertex {vertex} not found")

    def _subtask_times(self, job: str, vertex: str) -> dict[str, Any]:
        parallelism = VERTICES[self._vertex_number(job, vertex)][1]
        start = self.started_ms + 1000
        times = {"SCHEDULED": start, "DEPLOYING": start + 60_000, "INITIALIZING": start + 200_000}
        return {
            "id": vertex,
            "name": "",
            "now": now_ms(),
            "subtasks": [
                {
                    "subtask": subtask,
                    "endpoint": f"worker-{subtask % 3}:41001",
                    "duration": now_ms() - start,
                    "timestamps": dict.fromkeys(TASK_STATES, 0)
                    | times
                    | {"RUNNING": start + 400_000 + subtask * 90_000},
                }
                for subtask in range(parallelism)
            ],
        }

    def _back_pressure(self, job: str, vertex: str) -> dict[str, Any]:
        _, parallelism, busy, held, _ = VERTICES[self._vertex_number(job, vertex)]
        level = "high" if held > 0.5 else "ok"
        return {
            "status": "ok",
            "backpressureLevel": level,
            "end-timestamp": now_ms(),
            "subtasks": [
                {
                    "subtask": subtask,
                    "backpressureLevel": level,
                    "ratio": held,
                    "busyRatio": busy,
                    "idleRatio": max(0.0, 1 - busy - held),
                    "backpressure-level": level,
                }
                for subtask in range(parallelism)
            ],
            "backpressure-level": level,
        }

    def _watermarks(self, job: str, vertex: str) -> list[dict[str, str]]:
        number = self._vertex_number(job, vertex)
        watermark = str(now_ms() - 42_000) if VERTICES[number][4] else str(-(2**63))
        return [
            {"id": f"{each}.currentInputWatermark", "value": watermark} for each in range(VERTICES[number][1])
        ]

    def _vertex_task_managers(self, job: str, vertex: str) -> dict[str, Any]:
        self._vertex_number(job, vertex)
        return {
            "id": vertex,
            "name": "",
            "now": now_ms(),
            "taskmanagers": [
                {
                    "endpoint": f"worker-{each}:41001",
                    "status": "RUNNING",
                    "start-time": self.started_ms,
                    "end-time": -1,
                    "duration": now_ms() - self.started_ms,
                    "metrics": _counts(1000, True),
                    "status-counts": {},
                    "taskmanager-id": f"tm-{each}",
                    "aggregated": {},
                }
                for each in range(3)
            ],
        }

    def _task_managers(self) -> list[dict[str, Any]]:
        return [] if self.empty else [task_manager(f"tm-{number}") for number in range(3)]

    def _task_manager(self, name: str) -> dict[str, Any]:
        if self.empty:
            raise KeyError(f"No TaskExecutor registered under {name}.")
        return task_manager(name)


def _task_state(job_state: str) -> str:
    return {"FAILED": "FAILED", "FINISHED": "FINISHED", "CANCELED": "CANCELED", "RUNNING": "RUNNING"}.get(
        job_state, "SCHEDULED"
    )


def _counts(records: int, reads: bool) -> dict[str, Any]:
    return {
        "read-bytes": records * 90,
        "read-bytes-complete": reads,
        "write-bytes": records * 70,
        "write-bytes-complete": True,
        "read-records": records if reads else 0,
        "read-records-complete": reads,
        "write-records": records // 2,
        "write-records-complete": True,
        "accumulated-backpressured-time": 0,
        "accumulated-idle-time": 0,
        "accumulated-busy-time": 0.0,
    }


def _exception(name: str, stack: str, at_ms: int, recovered: bool) -> dict[str, Any]:
    return {
        "exceptionName": name,
        "stacktrace": stack,
        "timestamp": at_ms,
        "failureLabels": {"level": "QUERY", "recovered": str(recovered).lower()},
        "taskName": None,
        "endpoint": "worker-1:41001",
        "taskManagerId": "tm-1",
        "concurrentExceptions": [],
    }
