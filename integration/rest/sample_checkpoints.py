"""Checkpoints of the sample cluster."""

from __future__ import annotations

from typing import Any

from integration.rest.sample_values import HOSTILE, MIB, RUNNING, now_ms


def checkpoints(started_ms: int) -> dict[str, Any]:
    """``GET /jobs/:jobid/checkpoints`` of a job that takes them."""
    history = [checkpoint(number) for number in range(61, 51, -1)]
    completed = [each for each in history if each["status"] == "COMPLETED"]
    summary = {
        key: dict(
            min=low,
            avg=low * 2,
            max=low * 5,
            p50=low * 2.0,
            p90=low * 3.0,
            p95=low * 4.0,
            p99=low * 5.0,
            p999=low * 5.0,
        )
        for key, low in (
            ("end_to_end_duration", 410),
            ("checkpointed_size", MIB),
            ("state_size", 20 * MIB),
        )
    }
    return {
        "counts": {"restored": 1, "total": 61, "in_progress": 1, "completed": 58, "failed": 2},
        "summary": summary | {name: _no_values() for name in ("alignment_buffered", "processed_data")},
        "latest": {
            "completed": completed[0],
            "savepoint": next(each for each in completed if each["is_savepoint"]),
            "failed": next(each for each in history if each["status"] == "FAILED"),
            "restored": {
                "id": 40,
                "restore_timestamp": started_ms,
                "is_savepoint": True,
                "external_path": "hdfs:///savepoints/savepoint-a1a1a1-0f",
                "claim-mode": "NO_CLAIM",
            },
        },
        "history": history,
        "directory": "hdfs:///yarnflow/checkpoints/" + RUNNING,
    }


def no_checkpoints() -> dict[str, Any]:
    """The same of a job without any."""
    return {
        "counts": dict.fromkeys(("restored", "total", "in_progress", "completed", "failed"), 0),
        "summary": {
            name: _no_values() for name in ("end_to_end_duration", "checkpointed_size", "state_size")
        },
        "latest": dict.fromkeys(("completed", "savepoint", "failed", "restored")),
        "history": [],
    }


def checkpoint(number: int) -> dict[str, Any]:
    """One of them: 52 to 61 are known."""
    status = {61: "IN_PROGRESS", 58: "FAILED"}.get(number, "COMPLETED")
    savepoint = number == 56
    trigger = now_ms() // 10_000 * 10_000 - (62 - number) * 10_000
    made = {
        "className": status.lower(),
        "id": number,
        "status": status,
        "is_savepoint": savepoint,
        "savepointFormat": "NATIVE" if savepoint else None,
        "trigger_timestamp": trigger,
        "latest_ack_timestamp": -1 if status == "IN_PROGRESS" else trigger + 512 + number,
        "checkpointed_size": 2 * MIB + number * 4096,
        "state_size": (24 + number % 5) * MIB,
        "end_to_end_duration": 400 + number * 37 % 300,
        "alignment_buffered": 0,
        "processed_data": 0,
        "persisted_data": 0,
        "num_subtasks": 0,
        "num_acknowledged_subtasks": 0,
        "checkpoint_type": "SAVEPOINT" if savepoint else "CHECKPOINT",
        "tasks": {},
        "trigger": "PERIODIC",
        "commit-wait": 120,
        "pause": 0,
        "copy": 210 if savepoint else 0,
        "persist": 31,
        "queries": [
            {
                "name": "main",
                "batch-id": 2500 + number,
                "committed": trigger + 300,
                "watermark": trigger - 40_000,
                "sources": [
                    {
                        "description": "KafkaV2[Subscribe[flights]]",
                        "end-offset": '{"flights":{"0":1822,"1":1790}}',
                        "input-rows": 8190,
                    }
                ],
                "operators": [
                    {"name": "transformWithState", "rows": 48_000, "bytes": 31 * MIB, "partitions": 128}
                ],
            }
        ],
    }
    if status == "COMPLETED":
        made |= {
            "external_path": f"hdfs:///yarnflow/checkpoints/{RUNNING}/chk-{number}",
            "discarded": number < 54,
        }
    if status == "FAILED":
        made |= {"failure_timestamp": trigger, "failure_message": f"HDFS is in safe mode {HOSTILE}"}
    return made


def checkpoint_configuration() -> dict[str, Any]:
    """``GET /jobs/:jobid/checkpoints/config``."""
    return {
        "mode": "exactly_once",
        "interval": 10_000,
        "timeout": 600_000,
        "min_pause": 0,
        "max_concurrent": 1,
        "externalization": {"enabled": True, "delete_on_cancellation": True},
        "checkpoint_storage": "FileSystemCheckpointStorage",
        "unaligned_checkpoints": False,
        "tolerable_failed_checkpoints": 2**31 - 1,
        "aligned_checkpoint_timeout": 0,
        "checkpoints_after_tasks_finish": False,
        "retained": 3,
    }


def _no_values() -> dict[str, Any]:
    return dict(min=0, max=0, avg=0) | dict.fromkeys(("p50", "p90", "p95", "p99", "p999"), "NaN")
