"""What Spark's status store knows of executors and stages, read as one JSON text each.

Through py4j every field would be a call of its own.  Spark keeps a bounded number of stages, so sums over
them are sums over the last ones only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from yarnflow.spark.java_classes import java_class

_QUERY_ID: Final = re.compile(r"^id = ([0-9a-f-]{36})$", re.MULTILINE)
_BATCH: Final = re.compile(r"^batch = (\d+)$", re.MULTILINE)
_DRIVER: Final = "driver"


@dataclass(frozen=True, slots=True)
class ExecutorTotals:
    """Of all executors that are registered, since their start."""

    executors: int = 0
    active_tasks: int = 0
    completed_tasks: int = 0
    failed_tasks: int = 0
    task_time_ms: int = 0
    gc_time_ms: int = 0
    shuffle_read_bytes: int = 0
    shuffle_write_bytes: int = 0
    #: of the executor that had the largest
    heap_peak_bytes: int = 0


@dataclass(frozen=True, slots=True)
class DriverJvm:
    """The driver's JVM."""

    heap_used_bytes: int
    heap_committed_bytes: int
    heap_max_bytes: int
    gc_count: int
    gc_time_ms: int


@dataclass(frozen=True, slots=True)
class StageRun:
    """One stage that has ended well."""

    stage_id: int
    #: Spark's id of the streaming query; empty = it was of none
    query_id: str
    batch_id: int
    completed_ms: int
    #: sum over its tasks
    run_time_ms: int
    #: read of sources and exchanges
    records_in: int = 0
    #: written to exchanges
    records_out: int = 0


class StatusStore:
    """The status store of one SparkContext; may be asked by any thread.

    Parameters
    ----------
    context : SparkContext
    """

    def __init__(self, context: Any) -> None:
        self._context = context
        self._connected = False

    def _connect(self) -> None:
        """When it is needed first: a job must start also where this fails."""
        context = self._context
        gateway = context._gateway
        self._all = java_class(gateway, "java.util.Collections").emptyList()
        self._no_quantiles = gateway.new_array(gateway.jvm.double, 0)
        self._runtime = java_class(gateway, "java.lang.Runtime").getRuntime()
        self._store = context._jsc.sc().statusStore()
        self._mapper = java_class(gateway, "com.fasterxml.jackson.databind.ObjectMapper")()
        scala = java_class(gateway, "com.fasterxml.jackson.module.scala.DefaultScalaModule$")
        self._mapper.registerModule(getattr(scala, "MODULE$"))
        self._connected = True

    def executors(self) -> tuple[ExecutorTotals, DriverJvm]:
        """All executors that are registered, and the driver."""
        if not self._connected:
            self._connect()
        found = json.loads(self._mapper.writeValueAsString(self._store.executorList(True)))
        committed = int(self._runtime.totalMemory())
        used = committed - int(self._runtime.freeMemory())
        return executor_totals(found), driver_jvm(found, used, committed, int(self._runtime.maxMemory()))

    def stages(self) -> list[StageRun]:
        """The last stages that have ended well, the oldest first."""
        if not self._connected:
            self._connect()
        # Scala's default values do not count here: neither details nor quantiles, and tasks of any status
        found = self._store.stageList(self._all, False, False, self._no_quantiles, self._all)
        return stage_runs(json.loads(self._mapper.writeValueAsString(found)))


def executor_totals(summaries: Iterable[Mapping[str, Any]]) -> ExecutorTotals:
    """Sums of Spark's ``ExecutorSummary`` as JSON."""
    found = [one for one in summaries if one.get("id") != _DRIVER]

    def total(name: str) -> int:
        return sum(int(one.get(name) or 0) for one in found)

    return ExecutorTotals(
        executors=len(found),
        active_tasks=total("activeTasks"),
        completed_tasks=total("completedTasks"),
        failed_tasks=total("failedTasks"),
        task_time_ms=total("totalDuration"),
        gc_time_ms=total("totalGCTime"),
        shuffle_read_bytes=total("totalShuffleRead"),
        shuffle_write_bytes=total("totalShuffleWrite"),
        heap_peak_bytes=max((_peak(one, "JVMHeapMemory") for one in found), default=0),
    )


def driver_jvm(summaries: Iterable[Mapping[str, Any]], used: int, committed: int, most: int) -> DriverJvm:
    """The driver's, whose collections Spark counts as it does those of executors."""
    own = next((one for one in summaries if one.get("id") == _DRIVER), {})
    count = _peak(own, "MinorGCCount") + _peak(own, "MajorGCCount")
    return DriverJvm(used, committed, most, count, _peak(own, "TotalGCTime"))


def stage_runs(stages: Iterable[Mapping[str, Any]]) -> list[StageRun]:
    """Spark's ``StageData`` as JSON; what has not ended well is left out."""
    found = []
    for stage in stages:
        if stage.get("status") != "COMPLETE" or not stage.get("completionTime"):
            continue
        described = str(stage.get("description") or "")
        query, batch = _QUERY_ID.search(described), _BATCH.search(described)
        found.append(
            StageRun(
                stage_id=int(stage["stageId"]),
                query_id="" if query is None else query[1],
                batch_id=-1 if batch is None else int(batch[1]),
                completed_ms=int(stage["completionTime"]),
                run_time_ms=int(stage.get("executorRunTime") or 0),
                records_in=int(stage.get("inputRecords") or 0) + int(stage.get("shuffleReadRecords") or 0),
                records_out=int(stage.get("shuffleWriteRecords") or 0),
            )
        )
    return sorted(found, key=lambda stage: stage.stage_id)


def _peak(summary: Mapping[str, Any], name: str) -> int:
    return int((summary.get("peakMemoryMetrics") or {}).get(name) or 0)
