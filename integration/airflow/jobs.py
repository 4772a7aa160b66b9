"""DAGs of a test, and what they have begun on YARN."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from integration.airflow.components import Airflow
from integration.conftest import wait_until
from integration.yarn.jobs import Yarn

#: one task, ``job``, that has a program run
_DAG: Final = """
import datetime
from datetime import timedelta
from airflow.sdk import DAG
from yarnflow.airflow.operators.submit import YarnflowSubmitOperator

with DAG({dag_id!r}, schedule=None, dagrun_timeout={dagrun_timeout}):
    YarnflowSubmitOperator(
        task_id="job", application={program!r}, retries=3, retry_delay=timedelta(seconds=1), poll_interval=2,
        parallelism=1, options={options!r}, **{arguments!r},
    )
"""
TASK: Final = "job"


@dataclass
class AirflowOnYarn:
    """An Airflow and a YARN as one test uses them."""

    airflow: Airflow
    yarn: Yarn
    _dags: list[str] = field(default_factory=list)
    _files: list[Path] = field(default_factory=list)
    _before: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._before = {app["id"] for app in self.yarn.hadoop.yarn_applications()}

    def add_job(
        self,
        dag_id: str,
        program: Path,
        *options: str,
        dagrun_timeout: str = "None",
        **arguments: Any,
    ) -> None:
        """A DAG with one task, ``job``.

        Parameters
        ----------
        options
            Of the submit, as ``-Dkey=value``.
        dagrun_timeout
            As text of Python.
        arguments
            Of the operator.
        """
        given = dict(option.removeprefix("-D").split("=", 1) for option in options)
        source = _DAG.format(
            dag_id=dag_id,
            program=str(program),
            options=given,
            dagrun_timeout=dagrun_timeout,
            arguments=arguments,
        )
        self.add(f"{dag_id}.py", dag_id, source=source)

    def add(self, file: Path | str, *dag_ids: str, source: str | None = None) -> None:
        """A file with DAGs."""
        self._dags += dag_ids
        self._files.append(self.airflow.dags / Path(file).name)
        self.airflow.add_dags(file, *dag_ids, source=source)

    def drop_dags(self) -> None:
        """Nothing of the test's DAGs begins any more, and what they wait for is waited for no longer."""
        for dag_id in self._dags:
            self.airflow.api.pause(dag_id)
            for run in self.airflow.api.runs(dag_id):
                if run["state"] in ("queued", "running"):
                    self.airflow.api.end_run(dag_id, run["dag_run_id"])
        for file in self._files:
            file.unlink()

    def applications(self) -> list[str]:
        """Applications that the test has begun, oldest first, whatever became of them."""
        return sorted({app["id"] for app in self.yarn.hadoop.yarn_applications()} - self._before)

    def await_application(self) -> str:
        """The first one, as soon as YARN knows it."""
        return wait_until(self.applications, "an application", pause_s=0.05)[0]

    def await_deferred(self, dag_id: str, run_id: str, task_id: str = TASK, tries: int = 0) -> dict[str, Any]:
        """Until a task waits in the triggerer; returns what it has left by then."""
        self.airflow.api.await_task(dag_id, run_id, task_id, "deferred", tries=tries)
        return self.airflow.api.xcoms(dag_id, run_id, task_id)

    def assert_waits(self, dag_id: str, run_id: str, task_id: str = TASK) -> None:
        """The task is deferred, and a triggerer that lives has its trigger."""

        def followed() -> bool:
            task = self.airflow.api.task(dag_id, run_id, task_id)
            assert task["state"] == "deferred", self.airflow.api.story(dag_id, run_id)
            triggerer = task["triggerer_job"] or {}
            return bool(triggerer) and triggerer["state"] == "running"

        wait_until(followed, f"a trigger of {task_id}", pause_s=0.5)
