"""The task that has a job run, and waits for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, ClassVar, Final

from airflow.sdk import BaseOperator, BaseOperatorLink, Context
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowTaskTimeout,
    TaskDeferralError,
    TaskDeferralTimeout,
)

from yarnflow.airflow.hooks.documents import EndedJob
from yarnflow.airflow.hooks.errors import JobNotSuccessful, YarnflowTaskError
from yarnflow.airflow.hooks.yarnflow import YarnflowHook
from yarnflow.airflow.jobs.ending import OnKill
from yarnflow.airflow.jobs.waiting import WaitFor, failure_line
from yarnflow.airflow.jobs.watching import watch_for
from yarnflow.airflow.links import JOB_LINKS
from yarnflow.airflow.operators.about_job import push_job
from yarnflow.airflow.operators.earlier import Came, Look, stopped_together
from yarnflow.airflow.operators.kept import Kept
from yarnflow.airflow.operators.record import Record, records
from yarnflow.airflow.operators.task_jobs import TaskJobs
from yarnflow.airflow.tasks import UI_COLOR, check_job_key, check_no_secrets, seconds
from yarnflow.airflow.triggers.job import SUCCEEDED, YarnflowJobTrigger
from yarnflow.core.states import JobStatus

#: the trigger watches the time itself; where no triggerer runs, Airflow's scheduler does so much later
_GRACE_S: Final = 120.0
#: failures of the trigger itself after which the job is ended as at a time-out, and how close they are
_TRIGGER_FAILURES: Final = 3
_CLOSE_S: Final = 3600.0
#: behind the alarm of a worker that waits itself
_LOST_ALARM_S: Final = 5.0
_ON_EXISTING: Final = ("attach", "fail", "replace")
_ONE_OF_THE_RUN: Final = (
    "{{ dag.dag_id }}.{{ task.task_id }}{% if ti.map_index >= 0 %}.{{ ti.map_index }}{% endif %}.{{ run_id }}"
)
_ONE_OF_ALL_RUNS: Final = (
    "{{ dag.dag_id }}.{{ task.task_id }}{% if ti.map_index >= 0 %}.{{ ti.map_index }}{% endif %}"
)


class YarnflowSubmitOperator(TaskJobs, BaseOperator):
    """Has a program run as a job.

    At most one live job has a job key, so a task that is tried again, on whatever worker, finds the job that
    runs and goes on following it.  A job that FINISHED while nobody looked is a success, and is not run a
    second time.

    Parameters
    ----------
    application : str
        Path of the program on the worker (templated).
    application_args : sequence of str, optional
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
        Options of the job and its cluster, ``-D`` (templated); secrets belong into the connection.
    name : str, optional
        Of the job (templated).
    files : sequence of str, optional
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
    poll_interval : float or timedelta
        Between questions where events do not get through; a number is one of seconds.
    lost_after : float or timedelta
        For how long nobody answers for the job until the task fails.
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
        application_args: Sequence[str] | None = None,
        target: str = "",
        job_key: str = "",
        on_existing: str = "attach",
        restore: str = "",
        parallelism: int | None = None,
        options: Mapping[str, Any] | None = None,
        name: str = "",
        files: Sequence[str] | None = None,
        wait_for: str = WaitFor.FINISHED.value,
        on_kill: str = OnKill.CANCEL.value,
        savepoint_dir: str = "",
        deferrable: bool = True,
        poll_interval: float | timedelta = 10.0,
        lost_after: float | timedelta = 600.0,
        yarnflow_conn_id: str = YarnflowHook.default_conn_name,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.application = application
        self.application_args = application_args
        self.target = target
        self.job_key = job_key or (
            _ONE_OF_THE_RUN if wait_for == WaitFor.FINISHED.value else _ONE_OF_ALL_RUNS
        )
        self.on_existing = on_existing
        self.restore = restore
        self.parallelism = parallelism
        check_no_secrets(options)
        self.options = options
        self.name = name
        self.files = files
        self.wait_for = wait_for
        self.kill_action = on_kill
        self.savepoint_dir = savepoint_dir
        self.deferrable = deferrable
        self.poll_interval = poll_interval
        self.lost_after = lost_after
        self.yarnflow_conn_id = yarnflow_conn_id

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
        kept = records(context)
        try:
            return self._execute(context, kept, deadline)
        except AirflowTaskTimeout:
            # Airflow calls on_kill then, which ends the jobs
            self._note_ending(kept)
            raise
        except Exception as error:
            self._check_followed(context, kept, error)
            raise

    def _execute(self, context: Context, kept: Kept[Record], deadline: float | None) -> str:
        record = kept.load()
        look = self._take_up(record) if record is not None else Look(Came.TO_NOTHING)
        if look.came is Came.TO_NOTHING:
            record = self._submit(kept, record, look.left)
        assert record is not None
        return self._follow(context, kept, record, deadline, is_done=look.came is Came.TO_ITS_END)

    def _follow(
        self, context: Context, kept: Kept[Record], record: Record, deadline: float | None, *, is_done: bool
    ) -> str:
        """Wait for the jobs of a record, unless there is nothing to be waited for."""
        self._jobs = record.jobs
        push_job(context, self.hook, record.jobs[0], record.application_id, record.web_address)
        is_done = is_done or self._is_local
        if is_done or self.wait_for == WaitFor.NONE.value:
            return self._succeed(context, record.jobs, JobStatus.FINISHED if is_done else None)
        of_this_try = replace(record, deadline=deadline, trigger_failures=0, ending=False, savepoint="")
        if of_this_try != record:
            kept.save(of_this_try)
        return self._wait(context, record.jobs, deadline, record.application_id)

    def _check(self) -> None:
        for name, value, known in (
            ("wait_for", self.wait_for, [each.value for each in WaitFor]),
            ("on_kill", self.kill_action, [each.value for each in OnKill]),
            ("on_existing", self.on_existing, _ON_EXISTING),
        ):
            if value not in known:
                raise YarnflowTaskError(f"{name}={value!r} is none of {', '.join(known)}")
        if not self.job_key:
            # the command would take the job's name, which jobs of other tasks may have
            raise YarnflowTaskError("job_key is empty; leave it out, or give one that is not")
        check_job_key(self.job_key)
        self._times()
        self._as_submit()

    def _times(self) -> tuple[float, float]:
        """``poll_interval`` and ``lost_after`` in seconds."""
        return seconds("poll_interval", self.poll_interval), seconds("lost_after", self.lost_after)

    # --- waiting ---

    def _wait(
        self, context: Context, jobs: tuple[str, ...], deadline: float | None, application_id: str
    ) -> str:
        """Wait for the first of the jobs, then for the others."""
        self._check_goes_on()
        poll_s, lost_after_s = self._times()
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
            poll_interval=poll_s,
            lost_after=lost_after_s,
        )
        if self.deferrable:
            left_s = None if deadline is None else max(0.0, deadline - time.time()) + _GRACE_S
            self.defer(
                trigger=trigger,
                method_name="execute_complete",
                kwargs={"jobs": list(jobs), "deadline": deadline},
                timeout=None if left_s is None else timedelta(seconds=left_s),
            )
        # Airflow's alarm comes before; but what it raises in a callback is lost
        left_s = None if deadline is None else max(0.0, deadline - time.time()) + _LOST_ALARM_S
        watching = watch_for(
            left_s,
            self.hook,
            jobs[0],
            WaitFor(self.wait_for),
            self.log,
            poll_s=poll_s,
            lost_after_s=lost_after_s,
        )
        try:
            event = asyncio.run(watching)
        except AirflowTaskTimeout:
            # where it was killed besides, what is being ended is not looked at for success
            self._check_goes_on()
            return self._late(context, records(context), jobs[0], AirflowTaskTimeout)
        is_over = event["status"] == "failed" or event.get("state") == JobStatus.FINISHED.value
        is_its_own = is_over and not event.get("left")
        if self._killed and self.kill_action != OnKill.LEAVE.value and not is_its_own:
            # what came since then may come of the end of its job
            self._note_ending(records(context))
            self._check_goes_on()
        return self.execute_complete(context, event, list(jobs), deadline)

    def execute_complete(
        self,
        context: Context,
        event: dict[str, Any],
        jobs: list[str] | None = None,
        deadline: float | None = None,
    ) -> str:
        """What the trigger has seen; returns the id of the first job, or waits for the next one.

        Raises
        ------
        JobNotSuccessful
            The job did not end well, or is lost.
        AirflowTaskTimeout
            ``execution_timeout`` is over; the job is ended as ``on_kill`` says.
        """
        kept = records(context)
        record = kept.load()
        if jobs is None:
            # `airflow dags test` passes on nothing but the event (Airflow 3.3)
            jobs = list(record.jobs) if record is not None else []
            jobs = jobs if event["job_id"] in jobs else [event["job_id"]]
        self._jobs = record.jobs if record is not None and record.jobs else tuple(jobs)
        application_id = "" if record is None else record.application_id
        for each in self._jobs:
            self.hook.runs_in(each, application_id)
        job_id, status = event["job_id"], event["status"]
        ti = context["ti"]
        if event.get("savepoint"):
            ti.xcom_push(key="savepoint", value=event["savepoint"])
        if status != "timeout":
            ti.xcom_push(key="state", value=event.get("state"))
        else:
            return self._late(context, kept, job_id, AirflowTaskTimeout)
        left = tuple(jobs[jobs.index(job_id) + 1 :])
        if status == "stopped":
            return self._stopped(context, kept, event, left, deadline)
        if status != "success":
            if event.get("details"):
                self.log.error("%s", event["details"])
            # nobody waits for the others any more; one that is lost may go on, and so do they
            self._jobs = left if status == "failed" else ()
            if self._jobs:
                self._end_jobs(kept)
            raise JobNotSuccessful(event["error"])
        if left:
            return self._wait(context, left, deadline, application_id)
        state = event.get("state")
        return self._succeed(context, self._jobs, None if state is None else JobStatus(state))

    def _stopped(
        self,
        context: Context,
        kept: Kept[Record],
        event: dict[str, Any],
        left: tuple[str, ...],
        deadline: float | None,
    ) -> str:
        """The end of an earlier try, or of this one, has stopped a job with a savepoint: go on from there."""
        if self._killed:
            self._note_ending(kept)
            self._check_goes_on()
        if len(self._jobs) > 1:
            self._jobs = left
            self._end_jobs(kept)
            raise stopped_together([event["job_id"]])
        self.log.info("The end of an earlier try has stopped job %s; going on from there.", event["job_id"])
        record = self._submit(kept, kept.load(), event["left"])
        return self._follow(context, kept, record, deadline, is_done=False)

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> Any:
        """As Airflow's; what is not the job's fault does not leave it running unasked."""
        # known before Airflow is asked for what was noted; from here on a kill is theirs
        self._jobs = _followed(next_kwargs)
        try:
            try:
                return super().resume_execution(next_method, next_kwargs, context)
            except (TaskDeferralError, TaskDeferralTimeout) as error:
                return self._without_trigger(context, error, _reason(next_kwargs))
        except Exception as error:
            self._check_followed(context, records(context), error)
            raise

    def _check_followed(self, context: Context, kept: Kept[Record], error: Exception) -> None:
        """What is not the job's fault: where no next try follows it, it is ended."""
        if isinstance(error, AirflowException) or not self._jobs or self._target == "local":
            return
        ti, told = context["ti"], " ".join(self._jobs)
        if ti.try_number <= ti.max_tries:
            self.log.warning("The task fails (%s); the next try follows %s.", error, told)
            return
        self.log.error("The task fails (%s), and no other try follows %s.", error, told)
        # a stream outlives its task, and may be that of another one
        if self.wait_for == WaitFor.FINISHED.value:
            try:
                self._end_jobs(kept)
            except Exception as trouble:
                # who called this tells the first one
                self.log.error("%s may go on: %s", told, trouble)

    def _without_trigger(
        self, context: Context, error: TaskDeferralError | TaskDeferralTimeout, reason: str
    ) -> str:
        """The trigger was not run in time, or has failed: go on with another one, or end the job."""
        kept = records(context)
        record = kept.load()
        if record is None or not record.jobs:
            raise error
        self._jobs, first = record.jobs, record.jobs[0]
        if isinstance(error, TaskDeferralTimeout):
            return self._late(context, kept, first, TaskDeferralTimeout)
        now_s = time.time()
        failures = record.trigger_failures + 1 if now_s - record.trigger_failed_s < _CLOSE_S else 1
        if failures > _TRIGGER_FAILURES:
            status = self._where_it_should_be(context, kept)
            if status is not None:
                return self._succeed(context, self._jobs, status)
            raise TaskDeferralError(
                f"job {first} cannot be followed ({reason}); it {self._end_jobs(kept)}"
            ) from None
        record = replace(record, trigger_failures=failures, trigger_failed_s=now_s)
        kept.save(record)
        self.log.warning("The trigger failed (%s); job %s is followed by another one.", reason, first)
        return self._wait(context, record.jobs, record.deadline, record.application_id)

    def _succeed(self, context: Context, jobs: tuple[str, ...], status: JobStatus | None) -> str:
        # a worker may be told to end while callbacks of the task run
        self._jobs = ()
        if status is not None:
            context["ti"].xcom_push(key="state", value=status.value)
        context["ti"].xcom_push(key=SUCCEEDED, value=True)
        for outlet in self.outlets:
            context["outlet_events"][outlet].extra = {"job_id": jobs[0]}
        # last: what fails before is done again by the next try
        records(context).forget()
        return jobs[0]

    def _late(
        self, context: Context, kept: Kept[Record], job_id: str, error: type[BaseException]
    ) -> str:
        """The time is over: the jobs are ended, unless they have come there while nobody looked."""
        status = self._where_it_should_be(context, kept)
        if status is not None:
            return self._succeed(context, self._jobs, status)
        become = self._end_jobs(kept)
        if self._left:
            context["ti"].xcom_push(key="savepoint", value=self._left)
        late = f"job {job_id} did not get to wait_for={self.wait_for} within {self.execution_timeout}"
        raise error(f"{late}; it {become}") from None

    def _where_it_should_be(self, context: Context, kept: Kept[Record]) -> JobStatus | None:
        """The status of the first job if all are as the task wants them; None = they are not, or nobody says.

        Raises
        ------
        JobNotSuccessful
            One did not end well; the others are ended.
        """
        try:
            found = [self.hook.state(job_id) for job_id in self._jobs]
            come = all(self._has_come(each) for each in found)
        except YarnflowTaskError as error:
            self.log.warning("How the job is cannot be asked now: %s", error)
            return None
        for each in found:
            if each.over and each.status is not JobStatus.FINISHED:
                self._jobs = tuple(other.job_id for other in found if not other.over)
                self._end_jobs(kept)
                context["ti"].xcom_push(key="state", value=found[0].status.value)
                raise JobNotSuccessful(failure_line(each.job_id, each.status, each.failure))
        return found[0].status if come else None

    def _has_come(self, found: EndedJob) -> bool:
        """Whether a job is as the task wants it."""
        if found.over:
            return found.is_done
        if self.wait_for == WaitFor.CHECKPOINT.value:
            return self.hook.has_checkpoint(found.job_id)
        return self.wait_for == WaitFor.RUNNING.value and found.status is JobStatus.RUNNING


def _deadline(timeout: timedelta | None) -> float | None:
    """When the time is over, in seconds since the epoch."""
    return None if timeout is None else time.time() + timeout.total_seconds()


def _followed(next_kwargs: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The jobs that a trigger has followed; empty = it has failed, and only what was noted tells."""
    given = next_kwargs or {}
    first = (given.get("event") or {}).get("job_id")
    return tuple(given.get("jobs") or ([first] if first else ()))


def _reason(next_kwargs: Mapping[str, Any] | None) -> str:
    """Why a trigger has failed, in one line: the last one of its traceback."""
    told = (next_kwargs or {}).get("traceback") or ["no reason is known"]
    name, colon, text = str(told[-1]).strip().partition("\n")[0].partition(": ")
    return f"{name.rpartition('.')[2]}{colon}{text}" if colon else name
