"""The task that stops a job with a savepoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from airflow.sdk import Context

from yarnflow.airflow.hooks import rest
from yarnflow.airflow.hooks.errors import CommandFailed, JobNotSuccessful, Refused, Unreachable
from yarnflow.airflow.hooks.rest import RestClient
from yarnflow.airflow.operators.about_job import JobOperator

#: in the task state store: the job that is being stopped
_STOPPING: Final = "yarnflow_stopping"


class YarnflowStopOperator(JobOperator):
    """Stops a job with a savepoint: the batch that runs is committed, and the job ends FINISHED.

    Returns the savepoint's path, which is in XCom as ``savepoint``, too.

    Parameters
    ----------
    job_id, job_key : str
        Which job: one of the two (templated).
    savepoint_dir : str, optional
        Where the savepoint is made; default: ``execution.checkpointing.savepoint-dir`` (templated).
    drain : bool
        All windows fire before.
    yarnflow_conn_id : str
    """

    template_fields: Sequence[str] = (*JobOperator.template_fields, "savepoint_dir")

    def __init__(self, *, savepoint_dir: str = "", drain: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.savepoint_dir = savepoint_dir
        self.drain = drain

    def execute(self, context: Context) -> str:
        """Stop the job; returns the savepoint's path.

        Raises
        ------
        JobNotSuccessful
            No live job is of that name.
        CommandFailed
            The savepoint was not taken; the job goes on.
        """
        store = context.get("task_state_store")
        path = self._stopped_earlier(store)
        if not path:
            found = self.find(context)
            if store is not None:
                store.set(_STOPPING, found.job_id)
            path = self.hook.stop(found.job_id, self.savepoint_dir, drain=self.drain)
        if store is not None:
            store.delete(_STOPPING)
        context["ti"].xcom_push(key="savepoint", value=path)
        return path

    def _stopped_earlier(self, store: Any) -> str:
        """The savepoint with which an earlier try has stopped the job; empty = none has.

        Raises
        ------
        JobNotSuccessful
            One has, and its cluster is gone: the savepoint is there, but where is not known.
        """
        job_id = "" if store is None else store.get(_STOPPING)
        if not isinstance(job_id, str) or not job_id or self.find_any() is not None:
            return ""
        try:
            with RestClient(self.hook.access(job_id)) as client:
                found = client.ask(rest.checkpoints(job_id))
        except (CommandFailed, Unreachable, Refused):
            found = ()
        path = next((each.path for each in found if each.is_savepoint), "")
        if path:
            self.log.info("An earlier try has stopped job %s.", job_id)
            return path
        ended = self.hook.state(job_id)
        where = self.savepoint_dir or "execution.checkpointing.savepoint-dir"
        raise JobNotSuccessful(
            f"job {job_id} ended {ended.status.value} while an earlier try stopped it; look for its "
            f"savepoint in {where}"
        )
