"""TaskManagers and JobManager of the sample cluster."""

from __future__ import annotations

import re
from typing import Any

from integration.rest.sample_values import HOSTILE, MIB, RUNNING, now_ms


def task_manager(name: str) -> dict[str, Any]:
    """Raises KeyError for all but ``tm-0``, ``tm-1`` and ``tm-2``."""
    if not re.fullmatch("tm-[0-2]", name):
        raise KeyError(f"No TaskExecutor registered under {name}.")
    free = {"tm-0": 0, "tm-1": 1, "tm-2": 4}[name]
    return {
        "id": name,
        "path": f"worker-{name[-1]}:41001",
        "dataPort": -1,
        "jmxPort": -1,
        "timeSinceLastHeartbeat": now_ms() - 2100,
        "slotsNumber": 4,
        "freeSlots": free,
        "assignedTasks": 6,
        "hardware": {
            "cpuCores": 8,
            "physicalMemory": 32_768 * MIB,
            "freeMemory": 900 * MIB,
            "managedMemory": 0,
        },
        "memoryConfiguration": {
            "taskHeap": 1024 * MIB,
            "managedMemory": 512 * MIB,
            "jvmOverhead": 192 * MIB,
            "totalProcessMemory": 1728 * MIB,
        },
        "allocatedSlots": [{"jobId": RUNNING, "resource": {"cpuCores": 1.0}, "assignedTasks": 2}]
        * (4 - free),
        "metrics": {
            "heapUsed": 612 * MIB,
            "heapMax": 1024 * MIB,
            "nonHeapUsed": 90 * MIB,
            "nonHeapMax": -1,
            "garbageCollectors": [{"name": "G1_Young_Generation", "count": 44, "time": 812}],
        },
    }


def log_list(started_ms: int) -> dict[str, Any]:
    """``GET /jobmanager/logs``."""
    logs = [
        {"name": "jobmanager.log", "size": 48_327, "mtime": now_ms() - 1000},
        {"name": "stderr", "size": 0, "mtime": started_ms},
    ]
    return {"logs": logs}


def environment() -> dict[str, Any]:
    """``GET /jobmanager/environment``."""
    return {
        "python": {"version": "3.11.2", "executable": "/opt/venv/bin/python"},
        "process": {"pid": 4711, "resident-bytes": 61 * MIB, "user": HOSTILE},
        "jvm": {"version": "OpenJDK 17.0.15", "arch": "amd64", "options": ["-Xmx512m"]},
        "classpath": ["/opt/spark/jars/*"],
    }


def leadership(started_ms: int, standby: bool) -> dict[str, Any]:
    """Who leads, and who waits to."""
    return {
        "leader": {
            "id": "8e8ca83b",
            "address": "node-1:6123",
            "web-address": "http://node-1:8081",
            "epoch": 3,
            "since": started_ms,
        },
        "standbys": (
            [
                {
                    "id": "77aa01fe",
                    "address": "node-2:6123",
                    "web-address": "http://node-2:8081",
                    "host": "node-2",
                    "pid": 4242,
                    "application-id": "",
                }
            ]
            if standby
            else []
        ),
    }


def options() -> list[dict[str, str]]:
    """``GET /jobmanager/config``."""
    return [
        {"key": "jobmanager.rpc.address", "value": "localhost"},
        {"key": "execution.checkpointing.interval", "value": "10 s"},
        {"key": "execution.checkpointing.dir", "value": "hdfs:///yarnflow/checkpoints"},
        {"key": "security.token", "value": "******"},
        {"key": "pipeline.name", "value": HOSTILE},
        *({"key": f"some.other.option-{number}", "value": str(number)} for number in range(12)),
    ]


def threads() -> list[dict[str, str]]:
    """Of a thread dump."""
    return [
        {"threadName": name, "stringifiedThreadInfo": f'"{name}" Id={number}\n\tat here({HOSTILE})'}
        for number, name in enumerate(("MainThread", "mailbox", HOSTILE))
    ]
