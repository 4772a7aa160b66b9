"""The task that has a job run, as its tests make it."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred

from yarnflow.airflow.operators.submit import YarnflowSubmitOperator


def task(**arguments: Any) -> YarnflowSubmitOperator:
    """One of the key k."""
    return YarnflowSubmitOperator(task_id="t", application="job.py", **{"job_key": "k", **arguments})


def deferred(operator: YarnflowSubmitOperator, context: dict[str, Any]) -> TaskDeferred:
    """How it leaves the job to the trigger."""
    with pytest.raises(TaskDeferred) as raised:
        operator.execute(context)
    return raised.value
