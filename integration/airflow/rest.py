"""What tests ask Airflow, by its public REST API v2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import requests

from integration.conftest import wait_until
from tests.patience import PATIENCE

ENDED: Final = ("success", "failed", "skipped", "upstream_failed", "removed")


class NotFound(AssertionError):
    """There is no such thing."""


class AirflowApi:
    """Airflow's REST API, as its administrator.

    Parameters
    ----------
    address : str
        ``http://host:port`` of the API server.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._session = requests.Session()
        # no proxy of the machine's stands between this and a server on it
        self._session.trust_env = False
        self._token = ""

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """One request below ``/api/v2``; returns the JSON of the answer, None where it has none.

        Raises
        ------
        AssertionError
            The answer is an error; carries its text.
        """
        if not self._token:
            # everybody is an administrator: ``[core] simple_auth_manager_all_admins``
            answer = self._session.get(f"{self._address}/auth/token", timeout=PATIENCE.answer_s)
            answer.raise_for_status()
            self._token = answer.json()["access_token"]
        answer = self._session.request(
            method,
            f"{self._address}/api/v2{path}",
            json=body,
            params=query,
            headers={"Authorization": f"Bearer {self._token}", "Accept": "application/json"},
            timeout=PATIENCE.answer_s,
        )
        said = f"{method} {path}: {answer.status_code} {answer.text[:2000]}"
        if answer.status_code == requests.codes.not_found:
            raise NotFound(said)
        assert answer.ok, said
        return answer.json() if answer.content else None

    def health(self) -> dict[str, str]:
        """``scheduler``, ``triggerer``, ``dag_processor``, ``metadatabase`` → status; {} = no answer."""
        try:
            answer = self._session.get(f"{self._address}/api/v2/monitor/health", timeout=PATIENCE.answer_s)
        except requests.RequestException:
            return {}
        return {name: str(part["status"]) for name, part in answer.json().items()} if answer.ok else {}

    def warm_up(self) -> None:
        """Make the server load what it answers workers with, which it does with their first call.

        That takes seconds of processor time, in which it answers nobody else.
        """
        self._session.get(f"{self._address}/execution/health", timeout=PATIENCE.server_s).raise_for_status()

    # --- what DAGs are given ---

    def set_connection(self, connection_id: str, connection_type: str, **fields: Any) -> None:
        """Make a connection: ``host``, ``port``, ``password``, ``extra`` (JSON as text), …"""
        body = {"connection_id": connection_id, "conn_type": connection_type, **fields}
        self.call("POST", "/connections", body)

    def set_variable(self, name: str, value: str) -> None:
        """Make a variable, or give it another value."""
        found = self.call("GET", "/variables", variable_key_pattern=name)["variables"]
        body = {"key": name, "value": value}
        if any(variable["key"] == name for variable in found):
            self.call("PATCH", f"/variables/{name}", body)
        else:
            self.call("POST", "/variables", body)

    def set_pool(self, name: str, slots: int) -> None:
        """Make a pool, in which deferred tasks have slots, too, unless it is there."""
        if any(pool["name"] == name for pool in self.call("GET", "/pools")["pools"]):
            return
        self.call("POST", "/pools", {"name": name, "slots": slots, "include_deferred": True})

    # --- DAGs and their runs ---

    def pause(self, dag_id: str, paused: bool = True) -> None:
        """Its schedule begins no run any more, and no task of its runs; or again."""
        self.call("PATCH", f"/dags/{dag_id}", {"is_paused": paused})

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """A DAG's runs, oldest first."""
        return list(self.call("GET", f"/dags/{dag_id}/dagRuns", order_by="run_after")["dag_runs"])

    def import_errors(self) -> dict[str, str]:
        """File → why it is no DAG."""
        found = self.call("GET", "/importErrors")["import_errors"]
        return {error["filename"]: error["stack_trace"] for error in found}

    def await_dag(self, dag_id: str, file: str) -> None:
        """Until the DAG processor has read it from its file.

        That of an earlier test is an error for good where it went while it was read.
        """

        def known() -> bool:
            errors = [text for name, text in self.import_errors().items() if Path(name).name == file]
            assert not errors, f"{file}: {errors[0]}"
            answer = self.call("GET", "/dags", dag_id_pattern=dag_id)
            return any(dag["dag_id"] == dag_id and not dag["is_stale"] for dag in answer["dags"])

        wait_until(known, f"the DAG {dag_id}")

    def trigger(self, dag_id: str, run_id: str, conf: Mapping[str, Any] | None = None) -> None:
        """Begin a run, with parameters of its own."""
        body = {"dag_run_id": run_id, "logical_date": None, "conf": dict(conf or {})}
        self.call("POST", f"/dags/{dag_id}/dagRuns", body)

    def end_run(self, dag_id: str, run_id: str) -> None:
        """As a user marks a run failed, its tasks included."""
        self.call("PATCH", f"/dags/{dag_id}/dagRuns/{quote(run_id)}", {"state": "failed"})

    def run_state(self, dag_id: str, run_id: str) -> str:
        """``queued``, ``running``, ``success`` or ``failed``."""
        return str(self.call("GET", f"/dags/{dag_id}/dagRuns/{quote(run_id)}")["state"])

    def end_of_run(self, dag_id: str, run_id: str) -> str:
        """How a run has ended; its tasks' logs stand in the message if it does not."""

        def ended() -> str | None:
            state = self.run_state(dag_id, run_id)
            return state if state in ENDED else None

        try:
            return str(wait_until(ended, f"the end of {dag_id} {run_id}", PATIENCE.job_s, 0.5))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story(dag_id, run_id)}") from None

    # --- tasks ---

    def tasks(self, dag_id: str, run_id: str) -> dict[str, dict[str, Any]]:
        """Task → its instance, as Airflow shows it."""
        found = self.call("GET", f"{_run(dag_id, run_id)}/taskInstances")["task_instances"]
        return {task["task_id"]: task for task in found}

    def task(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        """A task's instance: ``state``, ``try_number``, ``trigger``, …"""
        return dict(self.call("GET", f"{_run(dag_id, run_id)}/taskInstances/{task_id}"))

    def await_task(self, dag_id: str, run_id: str, task_id: str, *states: str, tries: int = 0) -> str:
        """Until a task is in one of these states, at this try or a later one; returns the state.

        Raises
        ------
        AssertionError
            It ended otherwise, or is not there in time; carries the logs of the run's tasks.
        """

        def there() -> str | None:
            task = self.task(dag_id, run_id, task_id)
            state = str(task["state"])
            if task["try_number"] >= tries and state in states:
                return state
            assert state not in ENDED or task["try_number"] < tries, f"{task_id} is {state}"
            return None

        try:
            what = f"{dag_id}.{task_id} to be {' or '.join(states)}"
            return str(wait_until(there, what, PATIENCE.condition_s, 0.25))
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story(dag_id, run_id)}") from None

    def clear(self, dag_id: str, run_id: str, *task_ids: str) -> None:
        """Have tasks run again, whatever they are."""
        body = {
            "dry_run": False, "dag_run_id": run_id, "task_ids": list(task_ids), "only_failed": False,
            "reset_dag_runs": True,
        }  # fmt: skip
        self.call("POST", f"/dags/{dag_id}/clearTaskInstances", body)

    def mark(self, dag_id: str, run_id: str, task_id: str, state: str) -> None:
        """As a user marks a task ``success`` or ``failed``."""
        self.call("PATCH", f"{_run(dag_id, run_id)}/taskInstances/{task_id}", {"new_state": state})

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value") -> Any:
        """A value that a task has left."""
        path = f"{_run(dag_id, run_id)}/taskInstances/{task_id}/xcomEntries/{key}"
        return self.call("GET", path)["value"]

    def xcoms(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        """All that a task has left."""
        path = f"{_run(dag_id, run_id)}/taskInstances/{task_id}/xcomEntries"
        keys = [entry["key"] for entry in self.call("GET", path)["xcom_entries"]]
        left = {}
        for key in keys:
            # the next try may begin meanwhile, and with nothing
            with suppress(NotFound):
                left[key] = self.xcom(dag_id, run_id, task_id, key)
        return left

    def log(self, dag_id: str, run_id: str, task_id: str, attempt: int = 1) -> str:
        """What a try has logged, in the worker and in the triggerer, a line per event."""
        path = f"{_run(dag_id, run_id)}/taskInstances/{task_id}/logs/{attempt}"
        return "\n".join(_text(entry) for entry in self.call("GET", path)["content"])

    def links(self, dag_id: str, run_id: str, task_id: str) -> dict[str, str | None]:
        """Name of an operator's link → its address; None = it leads nowhere yet."""
        answer = self.call("GET", f"{_run(dag_id, run_id)}/taskInstances/{task_id}/links")
        return dict(answer["extra_links"])

    def asset_events(self, **query: Any) -> list[dict[str, Any]]:
        """Events of assets, oldest first."""
        found: Sequence[dict[str, Any]] = self.call("GET", "/assets/events", **query)["asset_events"]
        return sorted(found, key=lambda event: event["timestamp"])

    def story(self, dag_id: str, run_id: str) -> str:
        """States and logs of a run's tasks, for the message of a test that fails."""
        lines = []
        for task_id, task in self.tasks(dag_id, run_id).items():
            lines.append(f"--- {task_id}: {task['state']}, try {task['try_number']}")
            for attempt in range(1, task["try_number"] + 1):
                try:
                    lines.append(self.log(dag_id, run_id, task_id, attempt)[-4000:])
                except AssertionError as error:
                    lines.append(str(error)[:300])
        return "\n".join(lines)


def _run(dag_id: str, run_id: str) -> str:
    return f"/dags/{dag_id}/dagRuns/{quote(run_id)}"


def _text(entry: Any) -> str:
    if not isinstance(entry, dict):
        return str(entry)
    # of an exception the text stands apart
    errors = entry.get("error_detail") or ()
    told = [f"{error.get('exc_type')}: {error.get('exc_value')}" for error in errors]
    return " ".join([str(entry.get("level", "")), str(entry.get("event", "")), *told]).strip()
