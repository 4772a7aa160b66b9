"""A cluster that is not there, in the shapes of REST's answers: what the dashboard's tests look at.

Values move with the clock.  Every text a job can choose is markup that would run if it were taken for such.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

HOSTILE: Final = "<img src=x onerror=\"document.title='taken over'\">"
RUNNING: Final = "a1" * 16
RESTARTING: Final = "b2" * 16
FAILED: Final = "c3" * 16
FINISHED: Final = "d4" * 16
CANCELED: Final = "e5" * 16
CREATED: Final = "f6" * 16
MIB: Final = 1024 * 1024
JOB_STATES: Final = (
    *("INITIALIZING", "CREATED", "RUNNING", "FAILING", "FAILED", "CANCELLING", "CANCELED", "FINISHED"),
    *("RESTARTING", "SUSPENDED", "RECONCILING"),
)
TASK_STATES: Final = (
    *("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED", "CANCELING", "CANCELED"),
    *("FAILED", "RECONCILING"),
)
#: name, parallelism, busy, held back, inputs
VERTICES: Final[Sequence[tuple[str, int, float, float, Sequence[int]]]] = (
    ("Source: flights (Kafka) -> parse", 4, 0.31, 0.64, ()),
    ("Source: airports", 1, 0.02, 0.0, ()),
    ("join airports -> filter -> map", 4, 0.93, 0.02, (0, 1)),
    (f"TumblingEventTimeWindows {HOSTILE}", 4, 0.44, 0.0, (2,)),
    ("Sink: delays (Kafka)", 2, 0.11, 0.0, (3,)),
    ("Sink: rejected (files)", 1, 0.05, 0.0, (2, 0)),
)
METRICS: Final = (
    *("numRecordsIn", "numRecordsOut", "numRecordsInPerSecond", "numRecordsOutPerSecond", "numBytesIn"),
    *("busyTimeMsPerSecond", "backPressuredTimeMsPerSecond", "idleTimeMsPerSecond", "currentInputWatermark"),
)
PROCESS_METRICS: Final = (
    *("Status.JVM.CPU.Load", "Status.JVM.Memory.Heap.Used", "Status.JVM.Memory.NonHeap.Used"),
    *("Status.JVM.Threads.Count", "Status.Python.Memory.Resident"),
)
JOB_METRICS: Final = (
    *("numberOfCompletedCheckpoints", "lastCheckpointDuration", "lastCheckpointSize", "numRestarts", "uptime"),
    "lastCheckpointExternalPath",
)
TRACEBACK: Final = """USER_CODE_FAILED: ValueError: invalid literal for int() with base 10: 'NA'
org.apache.spark.SparkException: Job aborted due to stage failure
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2844)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/opt/spark/python/worker.py", line 1830, in main
    process()
  File "/home/ann/flights.py", line 41, in delay_of
    return int(row["dep_delay"])
ValueError: invalid literal for int() with base 10: 'NA'

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:572)
\t... 12 more"""


def now_ms() -> int:
    """The time, as answers give it."""
    return time.time_ns() // 1_000_000


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
            RUNNING: "RUNNING", RESTARTING: "RESTARTING", CREATED: "CREATED",
            FAILED: "FAILED", FINISHED: "FINISHED", CANCELED: "CANCELED",
        }  # fmt: skip
        self.names = {
            RUNNING: "delays-per-airport", RESTARTING: f"clicks {HOSTILE}", CREATED: "waiting-for-slots",
            FAILED: "import", FINISHED: "backfill-2025", CANCELED: "trial",
        }  # fmt: skip
        self.jars: list[dict[str, Any]] = []
        self.log_lines = [
            f"2026-11-26 10:{minute:02}:{second:02},000 INFO  yarnflow.jobmaster - batch {minute * 60 + second}"
            for minute in range(3)
            for second in range(60)
        ]
        self.log_lines[-2] = "2026-11-26 10:02:58,000 WARN  yarnflow.jobmaster - a heartbeat is late"
        self.log_lines[-1] = f"2026-11-26 10:02:59,000 ERROR yarnflow.jobmaster - {HOSTILE}"
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
            (f"{jobs}/jobmanager/config", lambda job: self._options()),
            (f"{jobs}/exceptions", self._exceptions),
            (f"{jobs}/checkpoints", self._checkpoints),
            (f"{jobs}/checkpoints/config", self._checkpoint_config),
            (f"{jobs}/checkpoints/details/(\\d+)", self._checkpoint_details),
            (f"{jobs}/metrics", lambda job: (JOB_METRICS, job)),
            (vertices, self._vertex),
            (f"{vertices}/subtasktimes", self._subtask_times),
            (f"{vertices}/backpressure", self._back_pressure),
            (f"{vertices}/watermarks", self._watermarks),
            (f"{vertices}/taskmanagers", self._vertex_task_managers),
            (f"{vertices}/accumulators", lambda job, vertex: {"id": vertex, "user-accumulators": [
                {"name": HOSTILE, "type": "IntCounter", "value": "17"}]}),
            (f"{vertices}/subtasks/metrics", lambda job, vertex: (METRICS, vertex)),
            ("/taskmanagers", lambda: {"taskmanagers": self._task_managers()}),
            (task_manager, self._task_manager),
            (f"(?:{task_manager}|/jobmanager)/metrics", lambda process: (PROCESS_METRICS, process)),
            (f"(?:{task_manager}|/jobmanager)/logs", lambda process: {"logs": self._logs()}),
            (f"(?:{task_manager}|/jobmanager)/thread-dump", lambda process: {"threadInfos": _threads()}),
            ("/jobmanager/config", self._options),
            ("/jobmanager/environment", self._environment),
            ("/jobmanager/leadership", self._leadership),
        )  # fmt: skip

    def answer(self, path: str, query: Mapping[str, str]) -> Any:
        """Raises KeyError where there is nothing."""
        for pattern, handler in self._routes:
            if found := re.fullmatch(pattern, path):
                answer = handler(*found.groups())
                if isinstance(answer, tuple):
                    return _metrics(*answer, query)
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
            "refresh-interval": 500, "timezone-name": "Coordinated Universal Time", "timezone-offset": 0,
            "flink-version": "0.1.0", "flink-revision": "", "features": self.features,
        }  # fmt: skip

    def _overview(self) -> dict[str, Any]:
        states = [self.states[job] for job in self._job_ids()]
        return {
            "taskmanagers": len(self._task_managers()), "slots-total": 0 if self.empty else 12,
            "slots-available": 0 if self.empty else 5, "jobs-running": len(states) and 3,
            "jobs-finished": states.count("FINISHED"), "jobs-cancelled": states.count("CANCELED"),
            "jobs-failed": states.count("FAILED"), "flink-version": "0.1.0", "flink-commit": "",
        }  # fmt: skip

    def _jobs_overview(self) -> dict[str, Any]:
        return {"jobs": [self._head(job) for job in self._job_ids()]}

    def _head(self, job: str) -> dict[str, Any]:
        state = self.states[job]
        over = state in ("FAILED", "FINISHED", "CANCELED")
        end = self.started_ms + 3_600_000 if over else -1
        tasks = sum(vertex[1] for vertex in VERTICES)
        task_state = _task_state(state)
        return {
            "jid": job, "name": self.names[job], "jobType": "STREAMING", "schedulerType": "Default",
            "start-time": self.started_ms, "end-time": end,
            "duration": (end if over else now_ms()) - self.started_ms, "state": state,
            "last-modification": self.started_ms + 4000,
            "tasks": {"total": tasks} | {name.lower(): tasks * (name == task_state) for name in TASK_STATES},
            "pending-operators": 0,
            "waiting-for": "4 slots; 2 of 6 are free" if state == "CREATED" else "",
        }  # fmt: skip

    def _job(self, job: str) -> dict[str, Any]:
        self._known(job)
        head = self._head(job)
        times = dict.fromkeys(JOB_STATES, 0) | {
            "INITIALIZING": self.started_ms, "CREATED": self.started_ms + 300,
            "RUNNING": self.started_ms + 1_204_000, head["state"]: self.started_ms + 1_204_000,
            "RESTARTING": self.started_ms + 1_180_000,
        }  # fmt: skip
        if head["end-time"] > 0:
            times[head["state"]] = head["end-time"]
        vertices = [self._vertex_summary(job, number) for number in range(len(VERTICES))]
        return {
            "jid": job, "name": head["name"], "isStoppable": False, "state": head["state"],
            "job-type": "STREAMING", "schedulerType": "Default", "start-time": head["start-time"],
            "end-time": head["end-time"], "duration": head["duration"], "maxParallelism": -1, "now": now_ms(),
            "timestamps": times, "vertices": vertices,
            "status-counts": dict.fromkeys(TASK_STATES, 0), "plan": self._plan(job), "pending-operators": 0,
            "waiting-for": head["waiting-for"], "restarts": 2 if job == RUNNING else 0,
            "slots-allocated": 4, "slots-required": 4, "queries": self._queries() if job == RUNNING else [],
        }  # fmt: skip

    def _vertex_summary(self, job: str, number: int) -> dict[str, Any]:
        name, parallelism, _, _, inputs = VERTICES[number]
        state = _task_state(self.states[job])
        return {
            "id": vertex_id(number), "slotSharingGroupId": "0" * 32, "name": name, "maxParallelism": 128,
            "parallelism": parallelism, "status": state, "start-time": self.started_ms + 1000, "end-time": -1,
            "duration": now_ms() - self.started_ms - 1000,
            "tasks": {each: parallelism * (each == state) for each in TASK_STATES},
            "metrics": _counts(self._records() // (1 + number), bool(inputs)),
        }  # fmt: skip

    def _records(self) -> int:
        return (now_ms() - self.started_ms) * 41

    def _plan(self, job: str) -> dict[str, Any]:
        nodes = [
            {
                "id": vertex_id(number), "parallelism": parallelism, "operator": "", "operator_strategy": "",
                "description": f"{name.replace('<', '&lt;')}<br/>+- second operator<br/>",
                "optimizer_properties": {},
            }
            | ({"inputs": [
                {"id": vertex_id(other), "num": place, "exchange": "pipelined_bounded",
                 "ship_strategy": "HASH" if number == 3 else "FORWARD"}
                for place, other in enumerate(inputs)
            ]} if inputs else {})
            for number, (name, parallelism, _, _, inputs) in enumerate(VERTICES)
        ]  # fmt: skip
        return {"jid": job, "name": self.names[job], "type": "STREAMING", "nodes": nodes[::-1]}

    def _queries(self) -> list[dict[str, Any]]:
        batch = (now_ms() - self.started_ms) // 2000
        return [{
            "name": "main", "batch-id": batch, "batch-duration": 640 + batch % 7 * 55,
            "input-rows": self._records(), "output-rows": self._records() // 9, "watermark": now_ms() - 42_000,
            "input-rows-per-second": 40_950.5, "processed-rows-per-second": 61_221.0,
            "state-rows": 48_211, "state-bytes": 31 * MIB,
            "durations": {"triggerExecution": 655, "addBatch": 500, "commitOffsets": 61, "walCommit": 55,
                          "queryPlanning": 24, "latestOffset": 12, "getBatch": 3},
            "sources": [
                {"description": "KafkaV2[Subscribe[flights]]", "input-rows": 81_900,
                 "behind": {"flights-0": 12, "flights-1": 4011, "flights-2": 0}},
                {"description": f"FileStreamSource[hdfs://nn/{HOSTILE}]", "input-rows": 0, "behind": {}},
            ],
            "operators": [{"name": "transformWithState", "rows": 48_211, "bytes": 31 * MIB,
                           "rows-updated": 512, "rows-removed": 20, "partitions": 128}],
        }]  # fmt: skip

    def _job_config(self, job: str) -> dict[str, Any]:
        self._known(job)
        return {"jid": job, "name": self.names[job], "execution-config": {
            "restart-strategy": "exponential-delay", "job-parallelism": 4, "object-reuse-mode": False,
            "user-config": {"threshold": HOSTILE, "region": "eu"},
        }}  # fmt: skip

    def _options(self) -> list[dict[str, str]]:
        return [
            {"key": "jobmanager.rpc.address", "value": "localhost"},
            {"key": "execution.checkpointing.interval", "value": "10 s"},
            {"key": "execution.checkpointing.dir", "value": "hdfs:///yarnflow/checkpoints"},
            {"key": "security.token", "value": "******"},
            {"key": "pipeline.name", "value": HOSTILE},
            *({"key": f"some.other.option-{number}", "value": str(number)} for number in range(12)),
        ]

    def _exceptions(self, job: str) -> dict[str, Any]:
        state = self._known(job)
        entries = []
        if state in ("FAILED", "RESTARTING") or job == RUNNING:
            entries = [
                _exception("USER_CODE_FAILED", TRACEBACK, now_ms() - 60_000, state != "FAILED"),
                _exception("TASK_MANAGER_LOST", f"TaskManager tm-2 is lost: no heartbeat for 50 s {HOSTILE}",
                           now_ms() - 900_000, True),
            ]  # fmt: skip
        return {"exceptionHistory": {"entries": entries, "truncated": bool(entries)}}

    def _checkpoints(self, job: str) -> dict[str, Any]:
        self._known(job)
        if job != RUNNING:
            return _no_checkpoints()
        history = [self._checkpoint(number) for number in range(61, 51, -1)]
        completed = [each for each in history if each["status"] == "COMPLETED"]
        summary = {
            key: dict(min=low, avg=low * 2, max=low * 5, p50=low * 2.0, p90=low * 3.0, p95=low * 4.0,
                      p99=low * 5.0, p999=low * 5.0)
            for key, low in (("end_to_end_duration", 410), ("checkpointed_size", MIB), ("state_size", 20 * MIB))
        }  # fmt: skip
        return {
            "counts": {"restored": 1, "total": 61, "in_progress": 1, "completed": 58, "failed": 2},
            "summary": summary | {name: _no_values() for name in ("alignment_buffered", "processed_data")},
            "latest": {
                "completed": completed[0],
                "savepoint": next(each for each in completed if each["is_savepoint"]),
                "failed": next(each for each in history if each["status"] == "FAILED"),
                "restored": {"id": 40, "restore_timestamp": self.started_ms, "is_savepoint": True,
                             "external_path": "hdfs:///savepoints/savepoint-a1a1a1-0f", "claim-mode": "NO_CLAIM"},
            },
            "history": history,
            "directory": "hdfs:///yarnflow/checkpoints/" + RUNNING,
        }  # fmt: skip

    def _checkpoint(self, number: int) -> dict[str, Any]:
        status = {61: "IN_PROGRESS", 58: "FAILED"}.get(number, "COMPLETED")
        savepoint = number == 56
        trigger = now_ms() // 10_000 * 10_000 - (62 - number) * 10_000
        made = {
            "className": status.lower(), "id": number, "status": status, "is_savepoint": savepoint,
            "savepointFormat": "NATIVE" if savepoint else None, "trigger_timestamp": trigger,
            "latest_ack_timestamp": -1 if status == "IN_PROGRESS" else trigger + 512 + number,
            "checkpointed_size": 2 * MIB + number * 4096, "state_size": (24 + number % 5) * MIB,
            "end_to_end_duration": 400 + number * 37 % 300, "alignment_buffered": 0, "processed_data": 0,
            "persisted_data": 0, "num_subtasks": 0, "num_acknowledged_subtasks": 0,
            "checkpoint_type": "SAVEPOINT" if savepoint else "CHECKPOINT", "tasks": {},
            "trigger": "PERIODIC", "commit-wait": 120, "pause": 0, "copy": 210 if savepoint else 0, "persist": 31,
            "queries": [{
                "name": "main", "batch-id": 2500 + number, "committed": trigger + 300, "watermark": trigger - 40_000,
                "sources": [{"description": "KafkaV2[Subscribe[flights]]",
                             "end-offset": '{"flights":{"0":1822,"1":1790}}', "input-rows": 8190}],
                "operators": [{"name": "transformWithState", "rows": 48_000, "bytes": 31 * MIB, "partitions": 128}],
            }],
        }  # fmt: skip
        if status == "COMPLETED":
            made |= {"external_path": f"hdfs:///yarnflow/checkpoints/{RUNNING}/chk-{number}", "discarded": number < 54}
        if status == "FAILED":
            made |= {"failure_timestamp": trigger, "failure_message": f"HDFS is in safe mode {HOSTILE}"}
        return made

    def _checkpoint_details(self, job: str, number: str) -> dict[str, Any]:
        self._known(job)
        if not 51 < int(number) < 62:
            raise KeyError(f"Checkpoint {number} is not known (any more).")
        return self._checkpoint(int(number))

    def _checkpoint_config(self, job: str) -> dict[str, Any]:
        self._known(job)
        return {
            "mode": "exactly_once", "interval": 10_000, "timeout": 600_000, "min_pause": 0, "max_concurrent": 1,
            "externalization": {"enabled": True, "delete_on_cancellation": True},
            "checkpoint_storage": "FileSystemCheckpointStorage", "unaligned_checkpoints": False,
            "tolerable_failed_checkpoints": 2**31 - 1, "aligned_checkpoint_timeout": 0,
            "checkpoints_after_tasks_finish": False, "retained": 3,
        }  # fmt: skip

    def _vertex(self, job: str, vertex: str) -> dict[str, Any]:
        number = self._vertex_number(job, vertex)
        name, parallelism, _, _, inputs = VERTICES[number]
        state = _task_state(self.states[job])
        subtasks = [
            {
                "subtask": subtask, "status": state, "attempt": 1, "endpoint": f"worker-{subtask % 3}:41001",
                "start-time": self.started_ms, "end-time": -1, "duration": now_ms() - self.started_ms,
                "metrics": _counts(self._records() // (4 + subtask), bool(inputs)),
                "taskmanager-id": f"tm-{subtask % 3}", "status-duration": {}, "start_time": self.started_ms,
            }
            for subtask in range(parallelism)
        ]  # fmt: skip
        return {
            "id": vertex, "name": name, "parallelism": parallelism, "maxParallelism": 128, "now": now_ms(),
            "subtasks": subtasks, "aggregated": {},
        }  # fmt: skip

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
        return {"id": vertex, "name": "", "now": now_ms(), "subtasks": [
            {"subtask": subtask, "endpoint": f"worker-{subtask % 3}:41001", "duration": now_ms() - start,
             "timestamps": dict.fromkeys(TASK_STATES, 0) | times | {"RUNNING": start + 400_000 + subtask * 90_000}}
            for subtask in range(parallelism)
        ]}  # fmt: skip

    def _back_pressure(self, job: str, vertex: str) -> dict[str, Any]:
        _, parallelism, busy, held, _ = VERTICES[self._vertex_number(job, vertex)]
        level = "high" if held > 0.5 else "ok"
        return {"status": "ok", "backpressureLevel": level, "end-timestamp": now_ms(), "subtasks": [
            {"subtask": subtask, "backpressureLevel": level, "ratio": held, "busyRatio": busy,
             "idleRatio": max(0.0, 1 - busy - held), "backpressure-level": level}
            for subtask in range(parallelism)
        ], "backpressure-level": level}  # fmt: skip

    def _watermarks(self, job: str, vertex: str) -> list[dict[str, str]]:
        number = self._vertex_number(job, vertex)
        watermark = str(now_ms() - 42_000) if VERTICES[number][4] else str(-(2**63))
        return [{"id": f"{each}.currentInputWatermark", "value": watermark} for each in range(VERTICES[number][1])]

    def _vertex_task_managers(self, job: str, vertex: str) -> dict[str, Any]:
        self._vertex_number(job, vertex)
        return {"id": vertex, "name": "", "now": now_ms(), "taskmanagers": [
            {"endpoint": f"worker-{each}:41001", "status": "RUNNING", "start-time": self.started_ms,
             "end-time": -1, "duration": now_ms() - self.started_ms, "metrics": _counts(1000, True),
             "status-counts": {}, "taskmanager-id": f"tm-{each}", "aggregated": {}}
            for each in range(3)
        ]}  # fmt: skip

    def _task_managers(self) -> list[dict[str, Any]]:
        return [] if self.empty else [self._task_manager(f"tm-{number}") for number in range(3)]

    def _task_manager(self, name: str) -> dict[str, Any]:
        if self.empty or not re.fullmatch("tm-[0-2]", name):
            raise KeyError(f"No TaskExecutor registered under {name}.")
        free = {"tm-0": 0, "tm-1": 1, "tm-2": 4}[name]
        return {
            "id": name, "path": f"worker-{name[-1]}:41001", "dataPort": -1, "jmxPort": -1,
            "timeSinceLastHeartbeat": now_ms() - 2100, "slotsNumber": 4, "freeSlots": free, "assignedTasks": 6,
            "hardware": {"cpuCores": 8, "physicalMemory": 32_768 * MIB, "freeMemory": 900 * MIB, "managedMemory": 0},
            "memoryConfiguration": {"taskHeap": 1024 * MIB, "managedMemory": 512 * MIB, "jvmOverhead": 192 * MIB,
                                    "totalProcessMemory": 1728 * MIB},
            "allocatedSlots": [{"jobId": RUNNING, "resource": {"cpuCores": 1.0}, "assignedTasks": 2}] * (4 - free),
            "metrics": {"heapUsed": 612 * MIB, "heapMax": 1024 * MIB, "nonHeapUsed": 90 * MIB, "nonHeapMax": -1,
                        "garbageCollectors": [{"name": "G1_Young_Generation", "count": 44, "time": 812}]},
        }  # fmt: skip

    def _logs(self) -> list[dict[str, Any]]:
        return [
            {"name": "jobmanager.log", "size": 48_327, "mtime": now_ms() - 1000},
            {"name": "stderr", "size": 0, "mtime": self.started_ms},
        ]

    def _environment(self) -> dict[str, Any]:
        return {
            "python": {"version": "3.11.2", "executable": "/opt/venv/bin/python"},
            "process": {"pid": 4711, "resident-bytes": 61 * MIB, "user": HOSTILE},
            "jvm": {"version": "OpenJDK 17.0.15", "arch": "amd64", "options": ["-Xmx512m"]},
            "classpath": ["/opt/spark/jars/*"],
        }

    def _leadership(self) -> dict[str, Any]:
        return {
            "leader": {"id": "8e8ca83b", "address": "node-1:6123", "web-address": "http://node-1:8081", "epoch": 3,
                       "since": self.started_ms},
            "standbys": [] if self.empty else [{"id": "77aa01fe", "address": "node-2:6123", "mode": "warm"}],
        }  # fmt: skip


def vertex_id(number: int) -> str:
    """Of one of :data:`VERTICES`."""
    return f"{number + 1:x}" * 32


def _task_state(job_state: str) -> str:
    return {"FAILED": "FAILED", "FINISHED": "FINISHED", "CANCELED": "CANCELED", "RUNNING": "RUNNING"}.get(
        job_state, "SCHEDULED"
    )


def _counts(records: int, reads: bool) -> dict[str, Any]:
    return {
        "read-bytes": records * 90, "read-bytes-complete": reads, "write-bytes": records * 70,
        "write-bytes-complete": True, "read-records": records if reads else 0, "read-records-complete": reads,
        "write-records": records // 2, "write-records-complete": True, "accumulated-backpressured-time": 0,
        "accumulated-idle-time": 0, "accumulated-busy-time": 0.0,
    }  # fmt: skip


def _exception(name: str, stack: str, at_ms: int, recovered: bool) -> dict[str, Any]:
    return {
        "exceptionName": name, "stacktrace": stack, "timestamp": at_ms,
        "failureLabels": {"level": "QUERY", "recovered": str(recovered).lower()},
        "taskName": None, "endpoint": "worker-1:41001", "taskManagerId": "tm-1", "concurrentExceptions": [],
    }  # fmt: skip


def _no_values() -> dict[str, Any]:
    return dict(min=0, max=0, avg=0) | dict.fromkeys(("p50", "p90", "p95", "p99", "p999"), "NaN")


def _no_checkpoints() -> dict[str, Any]:
    return {
        "counts": dict.fromkeys(("restored", "total", "in_progress", "completed", "failed"), 0),
        "summary": {name: _no_values() for name in ("end_to_end_duration", "checkpointed_size", "state_size")},
        "latest": dict.fromkeys(("completed", "savepoint", "failed", "restored")),
        "history": [],
    }


def _threads() -> list[dict[str, str]]:
    return [
        {"threadName": name, "stringifiedThreadInfo": f'"{name}" Id={number}\n\tat here({HOSTILE})'}
        for number, name in enumerate(("MainThread", "mailbox", HOSTILE))
    ]


def _metrics(names: Sequence[str], owner: str, query: Mapping[str, str]) -> list[dict[str, Any]]:
    if "get" not in query:
        return [{"id": name} for name in names]
    wanted = [name for name in query["get"].split(",") if name in names]
    if "agg" in query:
        return [{"id": name, **_spread(name, owner)} for name in wanted]
    return [{"id": name, "value": _value(name)} for name in wanted]


def _spread(name: str, vertex: str) -> dict[str, float]:
    middle = _middle(name)
    if name == "currentInputWatermark":
        return dict.fromkeys(("min", "max", "avg", "sum"), middle)
    _, parallelism, busy, held, _ = VERTICES[int(vertex[0], 16) - 1]
    shares = {"busyTimeMsPerSecond": busy, "backPressuredTimeMsPerSecond": held}
    if name in shares:
        middle = min(1000.0, shares[name] * 1000 * _wave()) / 1.3
    return {"min": middle * 0.8, "avg": middle, "max": middle * 1.3, "sum": middle * parallelism}


def _value(name: str) -> str:
    if name == "lastCheckpointExternalPath":
        return f"hdfs:///chk-61 {HOSTILE}"
    return str(round(_middle(name), 3))


def _middle(name: str) -> float:
    """Around a size that is like the metric's, different at every look."""
    sizes = {"Used": 4e8, "Resident": 6e7, "Load": 0.21, "Size": 2e7, "Bytes": 9e6, "Ms": 330.0}
    if name == "currentInputWatermark":
        return float(now_ms() - 42_000)
    size = next((size for part, size in sizes.items() if part in name), 2300.0)
    return size * _wave()


def _wave() -> float:
    return 1 + 0.15 * math.sin(now_ms() / 3000)
