"""Metrics of the sample cluster: their names, and values that move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from integration.rest.sample_values import HOSTILE, VERTICES, now_ms, wave

SUBTASK_METRICS: Final = (
    *("numRecordsIn", "numRecordsOut", "numRecordsInPerSecond", "numRecordsOutPerSecond", "numBytesIn"),
    *("busyTimeMsPerSecond", "backPressuredTimeMsPerSecond", "idleTimeMsPerSecond", "currentInputWatermark"),
)
PROCESS_METRICS: Final = (
    *("Status.JVM.CPU.Load", "Status.JVM.Memory.Heap.Used", "Status.JVM.Memory.NonHeap.Used"),
    *("Status.JVM.Threads.Count", "Status.Python.Memory.Resident"),
)
JOB_METRICS: Final = (
    *(
        "numberOfCompletedCheckpoints",
        "lastCheckpointDuration",
        "lastCheckpointSize",
        "numRestarts",
        "uptime",
    ),
    "lastCheckpointExternalPath",
)


def metrics(names: Sequence[str], owner: str, query: Mapping[str, str]) -> list[dict[str, Any]]:
    """Names, or the values that were asked for.

    Parameters
    ----------
    owner : str
        Id of what they belong to; where subtasks are put together, of the vertex.
    """
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
        middle = min(1000.0, shares[name] * 1000 * wave()) / 1.3
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
    return size * wave()
