"""The task that has a job run: submits it, or finds it running, and follows it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar, Final

from airflow.sdk import BaseOperator, BaseOperatorLink, Context
from airflow.sdk.exceptions import AirflowTaskTimeout, TaskDeferralError, TaskDeferralTimeout

from yarnflow.airflow.hooks.errors import CommandFailed, JobNotSuccessful, YarnflowTaskError
from yarnflow.airflow.hooks.settings import option_text
from yarnflow.airflow.hooks.tasks import UI_COLOR, ConnectedTask
from yarnflow.airflow.hooks.yarnflow import Submit, Submitted, YarnflowHook
from yarnflow.airflow.jobs.ending import OnKill, end_job_here, end_job_hurriedly
from yarnflow.airflow.jobs.waiting import WaitFor
from yarnflow.airflow.jobs.watching import watch
from yarnflow.airflow.links import JOB_LINKS
from yarnflow.airflow.operators.about_job import push_job
from yarnflow.airflow.operators.record import Record, Records
from yarnflow.airflow.triggers.job import YarnflowJobTrigger
from yarnflow.core.states import JobStatus

#: the trigger watches the time itself; where no triggerer runs, Airflow's scheduler does so much later
_GRACE_S: Final = 120.0
#: failures of the trigger itself in a row after which the job is ended as at a time-out
_TRIGGER_FAILURES: Final = 3
#: between two looks whether a job that is being canceled has ended
_LOOK_AGAIN_S: Final = 1.0
_ON_EXISTING: Final = ("attach", "fail", "replace")
_ONE_OF_THE_RUN: Final = (
    "{{ dag.dag_id }}.{{ task.task_id }}{% if ti.map_index >= 0 %}.{{ ti.map_index }}{% endif %}.{{ run_id }}"
)
_ONE_OF_ALL_RUNS: Final = (
    "{{ dag.dag_id }}.{{ task.task_id }}{% if ti.map_index >= 0 %}.{{ ti.map_index }}{% endif %}"
)


class YarnflowSubmitOperator(ConnectedTask, BaseOperator):
    """Has a program run as a job.

    At most one live job has a job key, so a task that is tried again, on whatever worker, finds the job that
    runs and goes on following it.  A job that FINISHED while nobody looked is a success, and is not run a
    second time.

    Parameters
    ----------
    application : str
        Path of the program on the worker (templated).
    application_args : sequence of str
        Its arguments (templated).
    target : str, optional
        ``yarn-per-job``, ``yarn-application``, ``yarn-session``, ``remote`` or ``local``; default: that of
        the connection (templated).  With ``local`` the job runs in the worker and ends with it.
    job_key : str, optional
        Default: DAG, task and run of a task that waits for the end of its job; DAG and task of others, whose
        job outlives the run (templated).
    on_existing : str
        What a submit does when another one's live job has the key: ``attach``, ``fail`` or ``replace``.
    restore : str, optional
        State to start from: ``latest``, ``none`` or a path; default: the newest if the last job of the key
        failed (templated).
    parallelism : int, optional
    options : mapping, optional
        Options of the job and its cluster, ``-D`` (templated).
    name : str, optional
        Of the job (templated).
    files : sequence of str
        Modules and archives shipped with it (templated).
    wait_for : str
        The task is done when the job has ``finished``, is ``running``, has completed a ``checkpoint``, or,
        with ``none``, is accepted.
    on_kill : str
        What becomes of the job when the task is ended, by a user or by ``execution_timeout``: ``cancel``,
        ``savepoint`` (stop with one) or ``leave``.
    savepoint_dir : str, optional
        Where that savepoint is made (templated).
    deferrable : bool
        Wait in the triggerer, and not in a worker.
    poll_interval : float
        Seconds between questions where events do not get through.
    lost_after : float
        Seconds for which nobody answers for the job until the task fails.
    yarnflow_conn_id : str
    """

    template_fields: Sequence[str] = (
        "application",
        "application_args",
        "target",
        "job_key",
        "restore",
        "options",
        "name",
        "files",
        "savepoint_dir",
        "yarnflow_conn_id",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {"options": "json", "application_args": "json"}
    operator_extra_links: Sequence[BaseOperatorLink] = JOB_LINKS
    ui_color = UI_COLOR

    def __init__(
        self,
        *,
        application: str,
        application_args: Sequence[str] = (),
        target: str = "",
        job_key: str = "",
        on_existing: str = "attach",
        restore: str = "",
        parallelism: int | None = None,
        options: Mapping[str, Any] | None = None,
        name: str = "",
        files: Sequence[str] = (),
        wait_for: str = WaitFor.FINISHED.value,
        on_kill: str = OnKill.CANCEL.value,
        savepoint_dir: str = "",
        deferrable: bool = True,
        poll_interval: float = 10.0,
        lost_after: float = 600.0,
        yarnflow_conn_id: str = YarnflowHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.application = application
        self.application_args = list(application_args)
        self.target = target
        self.job_key = job_key or (
            _ONE_OF_THE_RUN if wait_for == WaitFor.FINISHED.value else _ONE_OF_ALL_RUNS
        )
        self.on_existing = on_existing
        self.restore = restore
        self.parallelism = parallelism
        self.options = dict(options or {})
        self.name = name
        self.files = list(files)
        self.wait_for = wait_for
        self.kill_action = on_kill
        self.savepoint_dir = savepoint_dir
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.lost_after = lost_after
        self.yarnflow_conn_id = yarnflow_conn_id
        self._jobs: tuple[str, ...] = ()
        self._killed = False

    def execute(self, context: Context) -> str:
        """Have the job run, and wait for it; returns its id.

        Raises
        ------
        TaskDeferred
            It is waited for in the triggerer.
        CommandFailed
            It was not accepted.
        JobNotSuccessful
            It ended otherwise than FINISHED, or nobody knows how.
        """
        deadline = _deadline(self.execution_timeout)
        self._check()
        records = Records(context.get("task_state_store"))
        record = records.load()
        done = self._take_up(record) if record is not None else None
        if done is None:
            record = self._submit(records, record)
        assert record is not None
        self._jobs = record.jobs
        push_job(context, self.hook, record.jobs[0], record.application_id, record.web_address)
        if done or self.wait_for == WaitFor.NONE.value or self._is_local:
            return self._succeed(context, record.jobs, JobStatus.FINISHED if done or self._is_local else None)
        return self._wait(context, record.jobs, deadline, record.application_id)

    @property
    def _is_local(self) -> bool:
        return (self.target or self.hook.settings.target) == "local"

    def _check(self) -> None:
        for name, value, known in (
            ("wait_for", self.wait_for, [each.value for each in WaitFor]),
            ("on_kill", self.kill_action, [each.value for each in OnKill]),
            ("on_existing", self.on_existing, _ON_EXISTING),
        ):
            if value not in known:
                raise YarnflowTaskError(f"{name}={value!r} is none of {', '.join(known)}")

    # --- a job of this task ---

    def _take_up(self, record: Record) -> bool | None:
        """Look at the jobs of an earlier try: True = all have FINISHED, False = one lives, None = neither."""
        if not record.jobs:
            return None
        # from here on a kill is theirs
        self._jobs = record.jobs
        for job_id in record.jobs:
            self.hook.runs_in(job_id, record.application_id)
        statuses = []
        for job_id in record.jobs:
            try:
                statuses.append(self._settled(job_id))
            except JobNotSuccessful as error:
                self.log.warning("The job of an earlier try: %s", error)
                return None
        told = ", ".join(f"{job} is {found.value}" for job, found in zip(record.jobs, statuses, strict=True))
        if all(status is JobStatus.FINISHED for status in statuses):
            self.log.info("An earlier try has had this done: %s.", told)
            return True
        if any(status.globally_terminal and status is not JobStatus.FINISHED for status in statuses):
            self.log.info("The job of an earlier try did not end well, so there is another submit: %s.", told)
            return None
        self.log.info("An earlier try has submitted this; following it: %s.", told)
        return False

    def _settled(self, job_id: str) -> JobStatus:
        """The status of a job; of one that is being canceled, its end."""
        while True:
            status = self.hook.state(job_id).status
            if status is not JobStatus.CANCELLING:
                return status
            self.log.info("Job %s is being canceled; waiting for its end.", job_id)
            time.sleep(_LOOK_AGAIN_S)

    def _submit(self, records: Records, earlier: Record | None) -> Record:
        since_ms = int(time.time() * 1000)
        found = None
        if earlier is not None and not earlier.jobs and earlier.job_key == self.job_key:
            # the worker may have died when the cluster had accepted it
            since_ms = earlier.since_ms
            found = self.hook.find(job_key=self.job_key)
        record = Record(self.job_key, since_ms)
        if found is not None and record.is_own(found.start_ms) and not found.status.globally_terminal:
            self.log.info("The submit of an earlier try was accepted: job %s.", found.job_id)
            record = replace(record, jobs=(found.job_id,))
        else:
            records.save(record)
            try:
                record = replace(record, jobs=self._submitted())
            except CommandFailed as error:
                if error.code:
                    # refused, and not broken off: nothing of it runs
                    records.forget()
                elif self._killed:
                    self._end_accepted(record)
                raise
            except AirflowTaskTimeout:
                self._end_accepted(record)
                raise
        records.save(record)
        if self._is_local:
            return record
        try:
            found = self.hook.find(job_id=record.jobs[0])
        except CommandFailed as error:
            self.log.warning("Where job %s runs is not known now: %s", record.jobs[0], error)
            return record
        if found is not None:
            record = replace(record, application_id=found.application_id, web_address=found.web_address)
            records.save(record)
        return record

    def _end_accepted(self, record: Record) -> None:
        """The submit was broken off: end its job if the cluster had accepted it by then."""
        try:
            found = self.hook.find(job_key=record.job_key)
        except YarnflowTaskError as error:
            self.log.error("A job of the key %s may run: %s", record.job_key, error)
            return
        if found is not None and record.is_own(found.start_ms):
            self._jobs = (found.job_id,)
            self._end_jobs()

    def _submitted(self) -> tuple[str, ...]:
        while True:
            answer = self._run_submit()
            self._jobs = tuple(job.job_id for job in answer.jobs)
            if self._killed:
                self._end_jobs()
                raise YarnflowTaskError(f"the task was ended while it submitted {' '.join(self._jobs)}")
            if not any(job.attached_to_existing and self._is_over(job.job_id) for job in answer.jobs):
                return self._jobs

    def _is_over(self, job_id: str) -> bool:
        """Whether a job that was found was being canceled, or has failed by now: its key is free then."""
        if self._is_local:
            return False
        try:
            status = self._settled(job_id)
        except JobNotSuccessful:
            return True
        except YarnflowTaskError as error:
            self.log.warning("How job %s is cannot be asked now: %s", job_id, error)
            return False
        return status.globally_terminal and status is not JobStatus.FINISHED

    def _run_submit(self) -> Submitted:
        submit = Submit(
            application=self.application,
            arguments=[str(argument) for argument in self.application_args],
            target=self.target,
            job_key=self.job_key,
            on_existing=self.on_existing,
            restore=self.restore,
            name=self.name,
            parallelism=self.parallelism,
            options={key: option_text(value) for key, value in self.options.items()},
            files=self.files,
        )
        try:
            answer = self.hook.submit(submit, detached=not self._is_local)
        except CommandFailed as error:
            if error.details:
                self.log.error("%s", error.details)
            raise
        for job in answer.jobs:
            how = "has run here" if self._is_local else "is submitted"
            if job.attached_to_existing:
                how = "runs already; following it"
            self.log.info("Job %s (%s, key %s) %s.", job.job_id, job.name, self.job_key, how)
        return answer

    # --- waiting ---

    def _wait(
        self, context: Context, jobs: tuple[str, ...], deadline: float | None, application_id: str
    ) -> str:
        """Wait for the first of the jobs, then for the others."""
        self.hook.runs_in(jobs[0], application_id)
        trigger = YarnflowJobTrigger(
            job_id=jobs[0],
            next_jobs=list(jobs[1:]),
            yarnflow_conn_id=self.yarnflow_conn_id,
            application_id=application_id,
            wait_for=self.wait_for,
            on_kill=self.kill_action,
            savepoint_dir=self.savepoint_dir,
            deadline=deadline,
            poll_interval=self.poll_interval,
            lost_after=self.lost_after,
        )
        if self.deferrable:
            left_s = None if deadline is None else max(0.0, deadline - time.time()) + _GRACE_S
            self.defer(
                trigger=trigger,
                method_name="execute_complete",
                kwargs={"jobs": list(jobs), "deadline": deadline},
                timeout=None if left_s is None else timedelta(seconds=left_s),
            )
        watching = watch(
            self.hook,
            jobs[0],
            WaitFor(self.wait_for),
            self.log,
            poll_s=self.poll_interval,
            lost_after_s=self.lost_after,
        )
        return self.execute_complete(context, asyncio.run(watching), list(jobs), deadline)

    def execute_complete(
        self, context: Context, event: dict[str, Any], jobs: list[str], deadline: float | None = None
    ) -> str:
        """What the trigger has seen; returns the id of the first job, or waits for the next one.

        Raises
        ------
        JobNotSuccessful
            The job did not end well, or is lost.
        AirflowTaskTimeout
            ``execution_timeout`` is over; the job is ended as ``on_kill`` says.
        """
        record = Records(context.get("task_state_store")).load()
        self._jobs = record.jobs if record is not None and record.jobs else tuple(jobs)
        application_id = "" if record is None else record.application_id
        for each in self._jobs:
            self.hook.runs_in(each, application_id)
        job_id, status = event["job_id"], event["status"]
        ti = context["ti"]
        ti.xcom_push(key="state", value=event.get("state"))
        if event.get("savepoint"):
            ti.xcom_push(key="savepoint", value=event["savepoint"])
        if status == "timeout":
            self._end_jobs()
            raise AirflowTaskTimeout(
                f"job {job_id} did not get to wait_for={self.wait_for} within {self.execution_timeout}; "
                f"{_WHAT_BECOMES[OnKill(self.kill_action)]}"
            )
        if status != "success":
            if event.get("details"):
                self.log.error("%s", event["details"])
            raise JobNotSuccessful(event["error"])
        left = tuple(jobs[jobs.index(job_id) + 1 :])
        if left:
            return self._wait(context, left, deadline, application_id)
        state = event.get("state")
        return self._succeed(context, self._jobs, None if state is None else JobStatus(state))

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> Any:
        """As Airflow's; what is not the job's fault does not leave it running unasked."""
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except (TaskDeferralError, TaskDeferralTimeout) as error:
            return self._without_trigger(context, error)

    def _without_trigger(self, context: Context, error: Exception) -> str:
        """The trigger was not run in time, or has failed: go on with another one, or end the job."""
        records = Records(context.get("task_state_store"))
        record = records.load()
        if record is None or not record.jobs:
            raise error
        self._jobs = record.jobs
        failures = record.trigger_failures + 1
        if isinstance(error, TaskDeferralTimeout) or failures > _TRIGGER_FAILURES:
            self._end_jobs()
            raise error
        records.save(replace(record, trigger_failures=failures))
        self.log.warning("The trigger failed (%s); job %s is followed by another one.", error, record.jobs[0])
        deadline = _deadline(self.execution_timeout)
        return self._wait(context, record.jobs, deadline, record.application_id)

    def _succeed(self, context: Context, jobs: tuple[str, ...], status: JobStatus | None) -> str:
        Records(context.get("task_state_store")).forget()
        if status is not None:
            context["ti"].xcom_push(key="state", value=status.value)
        for outlet in self.outlets:
            context["outlet_events"][outlet].extra = {"job_id": jobs[0]}
        return jobs[0]

    # --- its end ---

    def on_kill(self) -> None:
        """End the job as the task says; Airflow kills this process some seconds later."""
        self._killed = True
        hook = self._hook
        if hook is None or hook.terminate() or self.kill_action == OnKill.LEAVE.value:
            return
        for job_id in self._jobs:
            end_job_hurriedly(hook, job_id, OnKill(self.kill_action), self.savepoint_dir, self.log)

    def _end_jobs(self) -> None:
        for job_id in self._jobs:
            end_job_here(self.hook, job_id, OnKill(self.kill_action), self.savepoint_dir, self.log)


_WHAT_BECOMES: Final = {
    OnKill.CANCEL: "it is canceled",
    OnKill.SAVEPOINT: "it is stopped with a savepoint",
    OnKill.LEAVE: "it goes on, and the next try follows it",
}


def _deadline(timeout: timedelta | None) -> float | None:
    """When the time is over, in seconds since the epoch."""
    return None if timeout is None else time.time() + timeout.total_seconds()
