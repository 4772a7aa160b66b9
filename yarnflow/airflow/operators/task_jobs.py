"""Has the jobs of one task accepted by a cluster once, over all its tries, and ends them with the task.

Never decides what is waited for.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow.sdk.exceptions import AirflowTaskTimeout

from yarnflow.airflow.hooks.documents import FoundJob, accepted_jobs
from yarnflow.airflow.hooks.errors import CommandFailed, ConnectionUnusable, YarnflowTaskError
from yarnflow.airflow.hooks.submission import in_a_task
from yarnflow.airflow.hooks.yarnflow import Submit, Submitted
from yarnflow.airflow.jobs.ending import End, OnKill, end_job_here, end_jobs_hurriedly
from yarnflow.airflow.operators.earlier import Came, EarlierJobs, Look
from yarnflow.airflow.operators.kept import Kept
from yarnflow.airflow.operators.record import NOT_KNOWN, Record
from yarnflow.airflow.tasks import ConnectedTask, check_options, options, texts


class TaskJobs(ConnectedTask):
    """Of a task that submits a program: its jobs.  The parameters are those of the operator."""

    task_id: str
    log: Any
    application: str
    application_args: Sequence[str] | None
    target: str
    job_key: str
    on_existing: str
    restore: str
    parallelism: int | None
    options: Mapping[str, Any] | None
    name: str
    files: Sequence[str] | None
    kill_action: str
    savepoint_dir: str
    #: those that a kill ends
    _jobs: tuple[str, ...] = ()
    _killed = False
    #: the task is ending them: a kill would break that off
    _ends = False
    _end_of_try: End | None = None
    #: of the first job, when it was ended here; empty = none
    _left = ""
    #: of the submit; empty = it was not looked
    _target = ""

    @property
    def _is_local(self) -> bool:
        return self._resolved_target == "local"

    @property
    def _resolved_target(self) -> str:
        if not self._target:
            self._target = self.hook.target(self.target, options(self.options))
        return self._target

    def _as_submit(self) -> Submit:
        # a template may give a number, and a program may be a Path
        return Submit(
            application=str(self.application),
            arguments=texts("application_args", self.application_args),
            target=self.target,
            job_key=str(self.job_key),
            on_existing=self.on_existing,
            restore=self.restore,
            name=self.name,
            parallelism=self.parallelism,
            options=options(self.options),
            files=texts("files", self.files),
        )

    def _take_up(self, record: Record) -> Look:
        """Look at the jobs of an earlier try; this one starts from what they have left.

        Raises
        ------
        YarnflowTaskError
            See :meth:`EarlierJobs.look_at`.
        """
        if not record.jobs:
            return Look(Came.TO_NOTHING, record.savepoint)
        # from here on a kill is theirs
        self._jobs = record.jobs
        may_be_stopped = self.kill_action == OnKill.SAVEPOINT.value
        return self._earlier.look_at(record, self.restore, may_be_stopped=may_be_stopped)

    @property
    def _earlier(self) -> EarlierJobs:
        return EarlierJobs(self.hook, self.log, self._check_goes_on)

    def _check_goes_on(self) -> None:
        """Raise YarnflowTaskError when the task was ended: Airflow kills this process a little later."""
        if self._killed:
            raise YarnflowTaskError(f"task {self.task_id} was ended")

    def _submit(self, kept: Kept[Record], earlier: Record | None, left: str) -> Record:
        """Have the program's jobs accepted, or find that they were.

        Parameters
        ----------
        left : str
            The state that the job of an earlier try has left to start from; empty = none.
        """
        if not self._is_local:
            # nothing is to run that nobody can follow
            self.hook.check_access(self._resolved_target)
            check_options(self._resolved_target, options(self.options))
        # those of an earlier try are over
        self._jobs = ()
        record = Record(self.job_key, int(time.time() * 1000), savepoint=left)
        found = None
        if earlier is not None and not earlier.jobs and earlier.job_key == self.job_key:
            # the worker may have died when the cluster had accepted it
            record = replace(record, since_ms=earlier.since_ms, not_own=earlier.not_own)
            found = self._accepted_earlier()
        elif not self._is_local and self.on_existing != "attach":
            # that of another run may be as young as this task's
            record = replace(record, not_own=self._that_of_others())
        if found is not None and record.is_own(found) and not self._is_over(found.job_id):
            self.log.info("The submit of an earlier try was accepted: job %s.", found.job_id)
            record = replace(record, jobs=(found.job_id,))
        else:
            submit = replace(self._as_submit(), restore=self.restore or record.savepoint)
            kept.save(record)
            try:
                record = replace(record, jobs=self._submitted(kept, submit))
            except (CommandFailed, ConnectionUnusable) as error:
                if not isinstance(error, CommandFailed) or error.code:
                    # refused, and not broken off: no job of the key is this task's
                    self._forget_submit(kept, earlier if left else None)
                elif self._killed:
                    self._end_accepted(kept, record)
                raise
            except AirflowTaskTimeout:
                self._end_accepted(kept, record)
                raise
        record = replace(record, savepoint="")
        kept.save(record)
        if self._is_local:
            return record
        try:
            found = self.hook.find(job_id=record.jobs[0])
        except CommandFailed as error:
            self.log.warning("Where job %s runs is not known now: %s", record.jobs[0], error)
            return record
        if found is not None:
            record = replace(record, application_id=found.application_id, web_address=found.web_address)
            kept.save(record)
        return record

    def _that_of_others(self) -> str:
        """The job that has the key before a submit, as :attr:`Record.not_own`."""
        try:
            other = self.hook.find(job_key=self.job_key)
        except CommandFailed as error:
            self._check_goes_on()
            self.log.warning("Whether a job has the key %s is not known: %s", self.job_key, error)
            return NOT_KNOWN
        return "" if other is None else other.job_id

    def _accepted_earlier(self) -> FoundJob | None:
        """The live job of the key, as far as it can be found; one on the worker has ended with it."""
        if self._is_local:
            return None
        try:
            return self.hook.find(job_key=self.job_key)
        except CommandFailed as error:
            if self.on_existing != "attach":
                # the submit would take the job for another one's
                raise
            self.log.warning("Whether an earlier submit was accepted is not known: %s", error)
            return None

    @staticmethod
    def _forget_submit(kept: Kept[Record], earlier: Record | None) -> None:
        if earlier is not None:
            # the next try starts from there, too
            kept.save(earlier)
        else:
            kept.forget()

    def _end_accepted(self, kept: Kept[Record], record: Record) -> None:
        """The submit was broken off: end its job if the cluster had accepted it by then."""
        try:
            found = self.hook.find(job_key=record.job_key)
        except YarnflowTaskError as error:
            self.log.error("A job of the key %s may run: %s", record.job_key, error)
            return
        if found is not None and record.is_own(found):
            self._jobs = (found.job_id,)
            self._keep(kept, replace(record, jobs=self._jobs, application_id=found.application_id))
            self._end_jobs(kept)

    def _submitted(self, kept: Kept[Record], submit: Submit) -> tuple[str, ...]:
        while True:
            self._check_goes_on()
            answer = self._run_submit(kept, submit)
            self._jobs = tuple(job.job_id for job in answer.jobs)
            if self._killed:
                self._end_jobs(kept)
                raise YarnflowTaskError(f"the task was ended while it submitted {' '.join(self._jobs)}")
            if not any(job.attached_to_existing and self._is_over(job.job_id) for job in answer.jobs):
                return self._jobs

    def _is_over(self, job_id: str) -> bool:
        return not self._is_local and self._earlier.is_over(job_id)

    def _run_submit(self, kept: Kept[Record], submit: Submit) -> Submitted:
        self._jobs = ()
        try:
            answer = self.hook.submit(submit, detached=not self._is_local)
        except CommandFailed as error:
            if error.details:
                self.log.error("%s", error.details)
            if not self._is_local:
                # the program has failed when some of its jobs were accepted
                self._jobs = accepted_jobs(error.document)
                self._end_jobs(kept)
            raise in_a_task(error) from None
        for job in answer.jobs:
            how = "has run here" if self._is_local else "is submitted"
            if job.attached_to_existing:
                how = "runs already; following it"
            self.log.info("Job %s (%s, key %s) %s.", job.job_id, job.name, self.job_key, how)
        return answer

    # --- their end ---

    @property
    def _end(self) -> End:
        """That of this try: whoever of it asks for it, it is one."""
        if self._end_of_try is None:
            self._end_of_try = End(OnKill(self.kill_action), self.savepoint_dir)
        return self._end_of_try

    def on_kill(self) -> None:
        """End the job as the task says; Airflow kills this process some seconds later."""
        self._killed = True
        if self._hook is None and not self._jobs:
            return
        hook = self.hook
        if not self._ends:
            # a submit is taken back; whatever else is asked has no use any more
            hook.terminate()
        # what ends them by then has asked for the same
        if self.kill_action != OnKill.LEAVE.value:
            end_jobs_hurriedly(hook, self._jobs, self._end, self.log)

    def _note_ending(self, kept: Kept[Record]) -> Record | None:
        """The jobs are about to be ended; returns their record."""
        try:
            record = kept.load()
        except Exception as error:
            self.log.warning("What an earlier try has noted is not known: %s", error)
            return None
        if record is not None and record.jobs and self.kill_action != OnKill.LEAVE.value:
            record = replace(record, ending=True)
            self._keep(kept, record)
        return record

    def _keep(self, kept: Kept[Record], record: Record) -> None:
        """Note it if Airflow answers: the jobs are ended all the same."""
        try:
            kept.save(record)
        except Exception as error:
            self.log.warning("What becomes of the jobs cannot be noted: %s", error)

    def _end_jobs(self, kept: Kept[Record]) -> str:
        """End the jobs, as the task fails; returns what has become of the first one."""
        jobs, end = self._jobs, self._end
        if not jobs:
            return "is over"
        if self._killed and end.action is not OnKill.LEAVE:
            end_jobs_hurriedly(self.hook, jobs, end, self.log)
            return "is being ended"
        record = self._note_ending(kept)
        self._ends = True
        try:
            ended = [end_job_here(self.hook, each, end, self.log) for each in jobs]
        finally:
            self._ends = False
        # at a time-out Airflow calls on_kill as well, which tries again what could not be done
        goes_on = zip(jobs, ended, strict=True) if end.action is not OnKill.LEAVE else ()
        self._jobs = tuple(job_id for job_id, become in goes_on if become.goes_on)
        self._left = ended[0].savepoint
        if record is not None and record.jobs == jobs and len(jobs) == 1 and self._left:
            self._keep(kept, replace(record, savepoint=self._left))
        return ended[0].text
