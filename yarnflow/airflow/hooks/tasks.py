"""What operators and sensors have in common: their connection, and the name of a job that runs already."""

from __future__ import annotations

from typing import Final

from yarnflow.airflow.hooks.errors import YarnflowTaskError
from yarnflow.airflow.hooks.yarnflow import YarnflowHook

#: of all tasks of the provider, in Airflow's pictures of a DAG
UI_COLOR: Final = "#e8f0fe"


class ConnectedTask:
    """Of a task with a connection: its hook, made when it is first needed."""

    yarnflow_conn_id: str
    _hook: YarnflowHook | None = None

    @property
    def hook(self) -> YarnflowHook:
        """The connection."""
        if self._hook is None:
            self._hook = YarnflowHook(self.yarnflow_conn_id)
        return self._hook


def check_name(task_id: str, job_id: str, job_key: str) -> None:
    """Raise YarnflowTaskError unless a task names its job in one of the two ways."""
    if bool(job_id) == bool(job_key):
        raise YarnflowTaskError(f"task {task_id}: give job_id or job_key, one of the two")
