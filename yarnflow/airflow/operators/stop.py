"""The task that stops a job with a savepoint."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from airflow.sdk import Context

from yarnflow.airflow.operators.about_job import JobOperator
from yarnflow.airflow.operators.kept import Kept
from yarnflow.airflow.operators.stopping import savepoint_of, stop_with_savepoint, stopped_earlier


@dataclass(frozen=True, slots=True)
class _Stopping:
    """What earlier tries were about to stop."""

    job_id: str
    #: by which they have asked for it
    request_ids: tuple[str, ...] = ()


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
            No live job is of that name; or it ended, not by a stop, while an earlier try stopped it.
        CommandFailed
            The savepoint was not taken; the job goes on.
        """
        kept = Kept(context, "yarnflow_stopping", _Stopping)
        earlier, found, path = kept.load(), self.find_any(), ""
        if found is not None and earlier is not None and found.job_id != earlier.job_id:
            # another job has the key by now; what others have stopped says nothing of it
            path = savepoint_of(self.hook, earlier.job_id, earlier.request_ids)
        elif found is None and earlier is not None:
            path = stopped_earlier(self.hook, earlier.job_id, self.savepoint_dir, self.log)
        if not path:
            found = self.live(context, found)
            self.check_goes_on()
            before = earlier.request_ids if earlier is not None and earlier.job_id == found.job_id else ()
            request_id = secrets.token_hex(16)
            kept.save(_Stopping(found.job_id, (*before, request_id)))
            path = stop_with_savepoint(
                self.hook, found.job_id, self.savepoint_dir, self.log, drain=self.drain, request_id=request_id
            )
        context["ti"].xcom_push(key="savepoint", value=path)
        # last: what fails before is done again by the next try
        kept.forget()
        return path
