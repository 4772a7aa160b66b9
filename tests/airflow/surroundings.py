"""What tasks get from Airflow, as far as the provider uses it; and documents of the command."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from airflow.sdk import Connection
from pydantic import JsonValue, TypeAdapter

from yarnflow.airflow.hooks.documents import kill_request

#: as Airflow takes it: no tuples
_JSON: TypeAdapter[Any] = TypeAdapter(JsonValue)

JOB = "0123456789abcdef0123456789abcdef"
OTHER = "fedcba9876543210fedcba9876543210"
#: how a person stops a job
BY_HAND = ("/sp/1", "0" * 32)


def by_kill(job_id: str, path: str = "/sp/1") -> tuple[str, str]:
    """How the end of a task stops its job."""
    return path, kill_request(job_id, 7)


@dataclass
class Connections:
    """By their ids."""

    by_id: dict[str, Any] = field(default_factory=dict)

    def add(
        self, conn_id: str = "yarnflow_default", *, host: str = "", password: str = "", **extra: Any
    ) -> None:
        """A connection of the type yarnflow."""
        self.by_id[conn_id] = Connection(
            conn_id=conn_id, conn_type="yarnflow", host=host, password=password, extra=json.dumps(extra)
        )


@dataclass
class TaskInstance:
    """XCom."""

    pushed: dict[str, Any] = field(default_factory=dict)
    dag_id: str = "dag"
    task_id: str = "task"
    run_id: str = "run"
    map_index: int = -1
    try_number: int = 1
    max_tries: int = 0

    def xcom_push(self, key: str, value: Any) -> None:
        json.dumps(value)
        self.pushed[key] = value


@dataclass
class StateStore:
    """Airflow's task state store, which takes JSON only."""

    values: dict[str, Any] = field(default_factory=dict)

    def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    def set(self, key: str, value: Any, *, retention: Any = None) -> None:
        self.values[key] = _JSON.validate_python(value)

    def delete(self, key: str) -> None:
        self.values.pop(key, None)


def new_context(store: StateStore | None = None) -> dict[str, Any]:
    """The context of a new try; the store is that of the one before."""
    return {"ti": TaskInstance(), "task_state_store": store or StateStore(), "outlet_events": {}}


# --- documents of the command ---


def submitted(*job_ids: str, attached: bool = False, target: str = "yarn-per-job") -> dict[str, Any]:
    """That of ``submit``."""
    jobs = [
        {"job_id": job_id, "name": "counts", "status": "CREATED", "attached_to_existing": attached}
        for job_id in job_ids
    ]
    return {"jobs": jobs, "target": target}


def listed(
    *job_ids: str,
    status: str = "RUNNING",
    job_key: str = "",
    web_address: str = "",
    application_id: str = "application_1_0001",
    start_ms: int = 1000,
) -> dict[str, Any]:
    """That of ``list``."""
    jobs = [
        {
            "job_id": job_id,
            "name": "counts",
            "status": status,
            "start_time_ms": start_ms,
            "end_time_ms": -1,
            "job_key": job_key,
            "slots_allocated": 1,
            "slots_required": 1,
            "cluster": "cluster",
        }
        for job_id in job_ids
    ]
    cluster = {
        "name": "cluster",
        "target": "yarn-per-job",
        "named_by": f"-Dyarn.application.id={application_id}" if application_id else "-m here:6123",
        "web_address": web_address,
        "error": "",
    }
    return {"jobs": jobs, "clusters": [cluster]}


def token(address: str, secret: str = "t0p-s3cret") -> dict[str, Any]:
    """That of ``token``."""
    return {"address": address, "read_token": "r3ad", "write_token": secret}


def info(
    job_id: str, status: str, error: dict[str, Any] | None = None, stop: tuple[str, str] | None = None
) -> dict[str, Any]:
    """That of ``info`` about a job."""
    overview = {"job_id": job_id, "name": "counts", "status": status}
    made = None if stop is None else {"savepoint": stop[0], "request_id": stop[1], "drained": False}
    return {"overview": overview, "error": error, "stop": made, "queries": []}
