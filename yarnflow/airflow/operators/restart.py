"""The task that replaces a running job by a new version of it, and rolls back if that does not commit."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from airflow.sdk import Context

from yarnflow.airflow.hooks.errors import CommandFailed, JobNotSuccessful, YarnflowTaskError
from yarnflow.airflow.hooks.settings import option_text
from yarnflow.airflow.hooks.yarnflow import Submit
from yarnflow.airflow.jobs.ending import OnKill, end_job_here
from yarnflow.airflow.jobs.waiting import WaitFor
from yarnflow.airflow.jobs.watching import watch
from yarnflow.airflow.operators.about_job import JobOperator, push_job

#: in the task state store: where the job was stopped; another try does not stop it again
_SAVEPOINT: Final = "yarnflow_savepoint"


class YarnflowRestartOperator(JobOperator):
    """Stops a job with a savepoint and starts a new version from it; rolls back where that does not commit.

    Returns the new job's id.  Another try goes on where the last one ended: a job that is stopped already is
    started from its savepoint.

    Parameters
    ----------
    job_key : str
        Of the running job, and of the new one (templated).
    application : str
        The new version's program (templated).
    application_args : sequence of str
        Its arguments (templated).
    rollback_application : str, optional
        The program that is started from the savepoint if the new version does not commit; default: none is,
        and the job stays stopped (templated).
    rollback_args : sequence of str, optional
        Its arguments; default: those of the new version (templated).
    target : str, optional
        As of :class:`yarnflow.airflow.operators.submit.YarnflowSubmitOperator` (templated).
    options : mapping, optional
        ``-D`` (templated).
    parallelism : int, optional
    files : sequence of str
        Shipped with the programs (templated).
    savepoint_dir : str, optional
        Where the savepoint is made (templated).
    commit_timeout : float
        Seconds from the submit of the new version to its first checkpoint.
    yarnflow_conn_id : str
    """

    template_fields: Sequence[str] = (
        *JobOperator.template_fields,
        *("application", "application_args", "rollback_application", "rollback_args", "target", "options"),
        *("files", "savepoint_dir"),
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"options": "json"}

    def __init__(
        self,
        *,
        application: str,
        application_args: Sequence[str] = (),
        rollback_application: str = "",
        rollback_args: Sequence[str] | None = None,
        target: str = "",
        options: Mapping[str, Any] | None = None,
        parallelism: int | None = None,
        files: Sequence[str] = (),
        savepoint_dir: str = "",
        commit_timeout: float = 600.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.application = application
        self.application_args = list(application_args)
        self.rollback_application = rollback_application
        self.rollback_args = None if rollback_args is None else list(rollback_args)
        self.target = target
        self.options = dict(options or {})
        self.parallelism = parallelism
        self.files = list(files)
        self.savepoint_dir = savepoint_dir
        self.commit_timeout = commit_timeout

    def execute(self, context: Context) -> str:
        """Replace the job; returns the new one's id.

        Raises
        ------
        YarnflowTaskError
            No job key is given.
        JobNotSuccessful
            No live job has the key; or the new version did not commit: what runs instead is in the message.
        CommandFailed
            The savepoint was not taken, and the old version goes on.
        """
        if not self.job_key:
            raise YarnflowTaskError(f"task {self.task_id}: give job_key, by which the new version is found")
        store = context.get("task_state_store")
        savepoint = self._stopped(context, store)
        context["ti"].xcom_push(key="savepoint", value=savepoint)
        trouble = ""
        job_id = ""
        try:
            job_id = self._start(context, self.application, self.application_args, savepoint)
            trouble = self._trouble(job_id)
        except CommandFailed as error:
            trouble = str(error)
        if trouble:
            raise JobNotSuccessful(self._roll_back(context, job_id, savepoint, trouble))
        if store is not None:
            store.delete(_SAVEPOINT)
        return job_id

    def _stopped(self, context: Context, store: Any) -> str:
        """The savepoint of the old version, which is stopped."""
        earlier = None if store is None else store.get(_SAVEPOINT)
        if isinstance(earlier, str) and self.find_any() is None:
            self.log.info("An earlier try has stopped the job with the savepoint %s.", earlier)
            return earlier
        found = self.find(context)
        savepoint = self.hook.stop(found.job_id, self.savepoint_dir)
        self.log.info("Job %s is stopped with the savepoint %s.", found.job_id, savepoint)
        if store is not None:
            store.set(_SAVEPOINT, savepoint)
        return savepoint

    def _start(
        self, context: Context, application: str, arguments: Sequence[str], savepoint: str
    ) -> str:
        submit = Submit(
            application=application,
            arguments=[str(argument) for argument in arguments],
            target=self.target,
            job_key=self.job_key,
            on_existing="fail",
            restore=savepoint,
            parallelism=self.parallelism,
            options={key: option_text(value) for key, value in self.options.items()},
            files=self.files,
        )
        job_id = self.hook.submit(submit).jobs[0].job_id
        self.log.info("Job %s of %s is submitted, from %s.", job_id, application, savepoint)
        found = self.hook.find(job_id=job_id)
        if found is not None:
            push_job(context, self.hook, job_id, found.application_id, found.web_address)
        return job_id

    def _trouble(self, job_id: str) -> str:
        """Why a version did not commit; empty = it has."""

        async def committed() -> dict[str, Any]:
            limit_s = self.commit_timeout
            async with asyncio.timeout(limit_s):
                return await watch(
                    self.hook, job_id, WaitFor.CHECKPOINT, self.log, poll_s=5.0, lost_after_s=limit_s
                )

        try:
            event = asyncio.run(committed())
        except TimeoutError:
            return f"job {job_id} has no checkpoint after {self.commit_timeout:g} s"
        return "" if event["status"] == "success" else str(event["error"])

    def _roll_back(self, context: Context, job_id: str, savepoint: str, trouble: str) -> str:
        """Start the old version again; returns what is to be said of it all."""
        text = f"the new version of job key {self.job_key} did not commit ({trouble})"
        if job_id:
            end_job_here(self.hook, job_id, OnKill.CANCEL, "", self.log)
        if not self.rollback_application:
            return f"{text}; nothing runs now, start it again from {savepoint}"
        arguments = self.application_args if self.rollback_args is None else self.rollback_args
        try:
            old = self._start_when_free(context, job_id, arguments, savepoint)
            again = self._trouble(old)
        except (CommandFailed, JobNotSuccessful) as error:
            again = str(error)
        if again:
            return f"{text}, and neither did {self.rollback_application} from {savepoint}: {again}"
        return f"{text}; {self.rollback_application} runs again from {savepoint} as job {old}"

    def _start_when_free(
        self, context: Context, job_id: str, arguments: Sequence[str], savepoint: str
    ) -> str:
        if job_id:
            self.hook.await_end(job_id)
        return self._start(context, self.rollback_application, arguments, savepoint)
