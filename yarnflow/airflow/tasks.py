"""What operators and sensors have in common: their connection, and how their arguments are read.

An argument may be the result of another task, which only exists when the task runs: so a task keeps its
arguments as they were given, and reads them here when it is executed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from yarnflow.airflow.hooks.errors import YarnflowTaskError
from yarnflow.airflow.hooks.settings import option_text
from yarnflow.airflow.hooks.yarnflow import YarnflowHook
from yarnflow.config.secrets import is_secret

#: of all tasks of the provider, in Airflow's pictures of a DAG
UI_COLOR: Final = "#e8f0fe"
#: with one of them in a submit alone, nothing else would find its job
_OF_CONNECTION: Final = frozenset({"yarn.staging-directory", "jobmanager.rpc.address"})
#: the same where jobs are submitted to a cluster that runs; one that is started for a job may have its own
_OF_RUNNING_CLUSTER: Final = frozenset({
    "high-availability.cluster-id",
    "high-availability.type",
    "high-availability.zookeeper.quorum",
    "jobmanager.rpc.port",
    "security.cluster-secret-file",
})
_JOB_ID: Final = re.compile("[0-9a-f]{32}")


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
    if job_id and _JOB_ID.fullmatch(job_id) is None:
        raise YarnflowTaskError(f"task {task_id}: {job_id!r} is not a job id (32 hexadecimal digits)")
    check_job_key(job_key)


def check_job_key(job_key: Any) -> None:
    """Raise YarnflowTaskError where a key would not be one line in lists of jobs."""
    # a template may give a number
    check_text("job_key", str(job_key), "\0\r\n")


def texts(name: str, value: Sequence[Any] | None) -> list[str]:
    """An argument that is a list; None = an empty one.

    Raises
    ------
    YarnflowTaskError
        It is something else: of a text each letter would be one.
    """
    if value is None:
        return []
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise YarnflowTaskError(f"{name}={value!r} is not a list, as in {name}=[...]")
    found = [str(each) for each in value]
    for each in found:
        check_text(name, each)
    return found


def check_text(name: str, value: str, refused: str = "\0") -> None:
    """Raise YarnflowTaskError where a text has a character that it may not have."""
    if any(character in value for character in refused):
        raise YarnflowTaskError(f"{name}: {value!r} has a character that cannot be passed on")


def seconds(name: str, value: Any) -> float:
    """An argument that is a time: seconds, or a ``timedelta``.

    Raises
    ------
    YarnflowTaskError
        It is something else, or none.
    """
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise YarnflowTaskError(f"{name}={value!r} is no number of seconds above 0, and no timedelta")
    return float(value)


def check_no_secrets(options: Any) -> None:
    """Raise ValueError where the text of a DAG has a secret: it is stored, and shown, with the DAG."""
    for key, value in options.items() if isinstance(options, Mapping) else ():
        # what is not there yet, as the result of another task, is not in the text
        if is_secret(str(key)) and isinstance(value, str) and value and "{{" not in value:
            raise ValueError(
                f"option {key} is a secret, and everybody who may see the DAG could read it there; put it "
                "into options of the connection, or into yarnflow-conf.yaml in its conf_dir"
            )


def options(value: Mapping[str, Any] | None) -> dict[str, str]:
    """The argument ``options``; None = there are none.

    Raises
    ------
    YarnflowTaskError
        It is no mapping, which is not shown as it may have secrets; or it says where clusters are found.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise YarnflowTaskError(f"options is a {type(value).__name__} and not a mapping of keys to values")
    for key in value:
        if key in _OF_CONNECTION:
            raise _of_connection(key)
    return {str(key): option_text(each) for key, each in value.items()}


def check_options(target: str, given: Mapping[str, str]) -> None:
    """Raise YarnflowTaskError where options of a task alone name the cluster that its target is."""
    for key in given:
        if target == "remote" and key in _OF_RUNNING_CLUSTER:
            raise _of_connection(key)


def _of_connection(key: str) -> YarnflowTaskError:
    return YarnflowTaskError(
        f"option {key} says where the job is found again; put it into options of the connection"
    )
