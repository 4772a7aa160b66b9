"""The task that replaces a running job by a new version of it, and rolls back if that does not commit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, Final

from airflow.sdk import Context

from yarnflow.airflow.hooks.documents import FoundJob, accepted_jobs
from yarnflow.airflow.hooks.errors import (
    CommandFailed,
    ConnectionUnusable,
    JobNotSuccessful,
    Refused,
    Unreachable,
    YarnflowTaskError,
)
from yarnflow.airflow.hooks.yarnflow import Submit
from yarnflow.airflow.jobs.ending import End, OnKill, end_job_here
from yarnflow.airflow.jobs.waiting import WaitFor
from yarnflow.airflow.jobs.watching import watch
from yarnflow.airflow.operators.about_job import JobOperator, push_job
from yarnflow.airflow.operators.kept import Kept
from yarnflow.airflow.operators.record import is_begun_since
from yarnflow.airflow.operators.stopping import stop_with_savepoint, stopped_earlier
from yarnflow.airflow.tasks import check_no_secrets, check_options, options, seconds, texts

#: see :class:`_Progress`
_PROGRESS: Final = "yarnflow_restart"
#: a cluster that ends with its job is gone within that
_ENDS_WITHIN_S: Final = 60.0
_LOOK_AGAIN_S: Final = 1.0
_SEVERAL: Final = "a restart is for programs with one job: a savepoint is that of one"


@dataclass(frozen=True, slots=True)
class _Progress:
    """How far a try has come; another one neither stops the job again nor starts a third one."""

    #: of the old version, about to be stopped; empty = nothing is
    stopping: str = ""
    #: of the old version, which is stopped; empty = it is not
    savepoint: str = ""
    #: of the new version; empty = it is not submitted
    job_id: str = ""
    #: when its submit began, ms since the epoch; 0 = it has not
    since_ms: int = 0

    def is_new(self, found: FoundJob) -> bool:
        """Whether a job of the key is of the submit that has begun."""
        is_old = found.job_id == self.stopping
        return bool(self.since_ms) and not is_old and is_begun_since(found.start_ms, self.since_ms)


class YarnflowRestartOperator(JobOperator):
    """Stops a job with a savepoint and starts a new version from it; rolls back where that does not commit.

    Returns the new job's id.  Another try goes on where the last one ended: a job that is stopped already is
    started from its savepoint, a new version that runs already is waited for.

    Parameters
    ----------
    job_key : str
        Of the running job, the only one of its program, and of the new one (templated).
    application : str
        The new version's program (templated).
    application_args : sequence of str, optional
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
    files : sequence of str, optional
        Shipped with the programs (templated).
    savepoint_dir : str, optional
        Where the savepoint is made (templated).
    commit_timeout : float or timedelta
        From the submit of the new version to its first checkpoint; a number is one of seconds.
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
        application_args: Sequence[str] | None = None,
        rollback_application: str = "",
        rollback_args: Sequence[str] | None = None,
        target: str = "",
        options: Mapping[str, Any] | None = None,
        parallelism: int | None = None,
        files: Sequence[str] | None = None,
        savepoint_dir: str = "",
        commit_timeout: float | timedelta = 600.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.application = application
        self.application_args = application_args
        self.rollback_application = rollback_application
        self.rollback_args = rollback_args
        self.target = target
        check_no_secrets(options)
        self.options = options
        self.parallelism = parallelism
        self.files = files
        self.savepoint_dir = savepoint_dir
        self.commit_timeout = commit_timeout
        self._commit_s = 0.0

    def execute(self, context: Context) -> str:
        """Replace the job; returns the new one's id.

        Raises
        ------
        YarnflowTaskError
            No job key is given, or a version cannot be submitted; the old one goes on.
        JobNotSuccessful
            No live job has the key; or the new version did not commit: what runs instead is in the message.
        CommandFailed
            The savepoint was not taken, and the old version goes on.
        """
        if not self.job_key:
            raise YarnflowTaskError(f"task {self.task_id}: give job_key, by which the new version is found")
        self._commit_s = seconds("commit_timeout", self.commit_timeout)
        kept = Kept(context, _PROGRESS, _Progress)
        new, old = self._versions(kept)
        target = self.hook.target(self.target, new.options)
        self.hook.check_access(target)
        check_options(target, new.options)
        progress = self._stopped(context, kept, [new] if old is None else [new, old])
        context["ti"].xcom_push(key="savepoint", value=progress.savepoint)
        jobs: tuple[str, ...] = ()
        try:
            if not progress.job_id:
                progress = replace(progress, since_ms=int(time.time() * 1000))
                kept.save(progress)
                jobs = self._start(new, progress.savepoint)
                progress = replace(progress, job_id=jobs[0])
                kept.save(progress)
                self._push(context, progress.job_id)
            trouble = _SEVERAL if len(jobs) > 1 else self._trouble(progress.job_id)
        except (CommandFailed, ConnectionUnusable) as error:
            if self._killed:
                # another try goes on from the savepoint
                raise
            trouble = str(error)
            if not progress.job_id and isinstance(error, CommandFailed):
                jobs = self._accepted(progress, error)
        if trouble:
            jobs = jobs or ((progress.job_id,) if progress.job_id else ())
            raise JobNotSuccessful(self._roll_back(context, kept, old, jobs, progress, trouble))
        kept.forget()
        return progress.job_id

    def _versions(self, kept: Kept[_Progress]) -> tuple[Submit, Submit | None]:
        """The new version, and the one to roll back to; what cannot be submitted stops no job.

        Raises
        ------
        YarnflowTaskError
            An argument is of another form, or a file is not there.
        """
        programs = [program for program in (self.application, self.rollback_application) if program]
        lacking = [f"program {path}" for path in programs if not Path(path).is_file()]
        lacking += [f"file {path}" for path in texts("files", self.files) if not Path(path).exists()]
        if lacking:
            raise YarnflowTaskError(f"there is no {lacking[0]} on this worker; {self._as_it_is(kept)}")
        new = Submit(
            application=str(self.application),
            arguments=texts("application_args", self.application_args),
            target=self.target,
            job_key=str(self.job_key),
            on_existing="fail",
            parallelism=self.parallelism,
            options=options(self.options),
            files=texts("files", self.files),
        )
        if not self.rollback_application:
            return new, None
        old = replace(new, application=str(self.rollback_application))
        if self.rollback_args is not None:
            old = replace(old, arguments=texts("rollback_args", self.rollback_args))
        return new, old

    def _stopped(
        self, context: Context, kept: Kept[_Progress], versions: Sequence[Submit]
    ) -> _Progress:
        """The old version is stopped, and the new one may be started already."""
        found = self.find_any()
        earlier = kept.load() or _Progress()
        if found is None and earlier.stopping:
            if not earlier.savepoint:
                path = stopped_earlier(self.hook, earlier.stopping, self.savepoint_dir, self.log)
                earlier = replace(earlier, savepoint=path)
                kept.save(earlier)
            self.log.info("An earlier try has stopped the job with the savepoint %s.", earlier.savepoint)
            return self._with_version_that_is_over(earlier)
        found = self.live(context, found)
        if not earlier.job_id and earlier.is_new(found):
            # the worker died between the cluster's answer and the note
            earlier = replace(earlier, job_id=found.job_id)
            kept.save(earlier)
        if found.job_id == earlier.job_id:
            self.log.info("An earlier try has started job %s; waiting for its checkpoint.", found.job_id)
            return earlier
        if found.one_of_several:
            is_one = f"the job of the key {self.job_key} is one of several of its program"
            raise YarnflowTaskError(f"{is_one}, and {_SEVERAL}; it goes on")
        self.check_goes_on()
        for version in versions:
            self._check_program(version)
        kept.save(_Progress(found.job_id))
        path = stop_with_savepoint(self.hook, found.job_id, self.savepoint_dir, self.log)
        progress = _Progress(found.job_id, path)
        self.log.info("Job %s is stopped with the savepoint %s.", found.job_id, path)
        kept.save(progress)
        return progress

    def _as_it_is(self, kept: Kept[_Progress]) -> str:
        """What earlier tries have come to, in words."""
        earlier = kept.load() or _Progress()
        if earlier.job_id:
            return f"an earlier try has started job {earlier.job_id} from {earlier.savepoint}"
        if earlier.savepoint:
            return f"an earlier try has stopped the job of the key {self.job_key}: {earlier.savepoint}"
        if earlier.stopping:
            return f"an earlier try was stopping job {earlier.stopping} with a savepoint"
        return f"the job of the key {self.job_key} goes on"

    def _check_program(self, version: Submit) -> None:
        """Raise YarnflowTaskError where a version would be refused: the job goes on then."""
        goes_on = f"the job of the key {self.job_key} goes on"
        try:
            self.hook.check_program(version)
        except CommandFailed as error:
            if error.details:
                self.log.error("%s", error.details)
            if not self._killed:
                said = f"{version.application} cannot be submitted, so {goes_on}: {error}"
                raise YarnflowTaskError(said) from None
        self.check_goes_on()

    def _with_version_that_is_over(self, earlier: _Progress) -> _Progress:
        """Nothing runs; where an earlier try has started the new version, it has ended since.

        One that has committed nothing is looked at as if it ended now; what another one has committed would
        be done again from the savepoint.

        Raises
        ------
        JobNotSuccessful
            It has committed, or nobody knows: a person has to say from where to go on.
        """
        if earlier.since_ms and not earlier.job_id:
            # whether its submit was accepted is not known
            over = self.hook.find(job_key=self.job_key, ended=True)
            if over is not None and earlier.is_new(over):
                earlier = replace(earlier, job_id=over.job_id)
        if not earlier.job_id:
            return earlier
        try:
            ended = self.hook.state(earlier.job_id)
        except JobNotSuccessful as error:
            how = f"may have committed ({error})"
        else:
            if ended.committed is False:
                return earlier
            how = f"{'has' if ended.committed else 'may have'} committed, and ended {ended.status.value}"
        raise JobNotSuccessful(
            f"the new version of job key {self.job_key}, job {earlier.job_id}, {how} since an earlier try "
            "was lost; nothing runs now: start it from its newest state (restore='latest'), or from the "
            f"savepoint {earlier.savepoint}, which does again what it has committed"
        )

    def _start(self, version: Submit, restore: str) -> tuple[str, ...]:
        """The jobs of a version; it has one, or cannot be restarted."""
        jobs = tuple(job.job_id for job in self.hook.submit(replace(version, restore=restore)).jobs)
        for job_id in jobs:
            self.log.info("Job %s of %s is submitted, from %s.", job_id, version.application, restore)
        return jobs

    def _accepted(self, progress: _Progress, error: CommandFailed) -> tuple[str, ...]:
        """The jobs of a submit that failed behind their acceptance, as far as they can be found."""
        jobs = accepted_jobs(error.document)
        if jobs or error.code:
            return jobs
        # its answer is lost
        try:
            found = self.find_any()
        except YarnflowTaskError as trouble:
            self.log.warning("Whether the new version was accepted is not known: %s", trouble)
            return ()
        return () if found is None or not progress.is_new(found) else (found.job_id,)

    def _push(self, context: Context, job_id: str) -> None:
        try:
            found = self.hook.find(job_id=job_id)
        except CommandFailed as error:
            self.log.warning("Where job %s runs is not known now: %s", job_id, error)
            found = None
        application_id, web_address = ("", "") if found is None else (found.application_id, found.web_address)
        push_job(context, self.hook, job_id, application_id, web_address)

    def _trouble(self, job_id: str) -> str:
        """Why a version did not commit; empty = it has."""

        async def committed() -> dict[str, Any]:
            limit_s = self._commit_s
            async with asyncio.timeout(limit_s):
                return await watch(
                    self.hook, job_id, WaitFor.CHECKPOINT, self.log, poll_s=5.0, lost_after_s=limit_s
                )

        try:
            event = asyncio.run(committed())
        except TimeoutError:
            return f"job {job_id} has no checkpoint after {self._commit_s:g} s"
        if event["status"] == "stopped":
            raise JobNotSuccessful(
                f"job {job_id} was stopped by the end of another task; it has left {event['left']}"
            )
        return "" if event["status"] == "success" else str(event["error"])

    def _what_runs(self, ended: Sequence[str]) -> str:
        """What has the key besides jobs that are being ended, in words."""
        try:
            other = self.find_any()
        except YarnflowTaskError as error:
            return f"what runs now is not known ({error})"
        if other is not None and other.job_id not in ended:
            return f"job {other.job_id} has the key now"
        return "nothing runs now, start it again from the savepoint"

    def _roll_back(
        self,
        context: Context,
        kept: Kept[_Progress],
        old: Submit | None,
        jobs: tuple[str, ...],
        progress: _Progress,
        trouble: str,
    ) -> str:
        """End the new version's jobs and start the old one again; returns what is to be said of it all."""
        savepoint = progress.savepoint
        text = f"the new version of job key {self.job_key}, from {savepoint}, did not commit ({trouble})"
        ended = [end_job_here(self.hook, job_id, End(OnKill.CANCEL), self.log) for job_id in jobs]
        # another try stops whatever runs by then, or starts the new version once more; noted before the old
        # version runs, which would be taken for the new one
        kept.save(replace(progress, job_id="", since_ms=0))
        for each in ended:
            if each.goes_on:
                return f"{text}, and {each.text}"
        if old is None:
            return f"{text}; {self._what_runs(jobs)}"
        try:
            for job_id in jobs:
                self._await_end(job_id)
            again_jobs = self._start(old, savepoint)
            self._push(context, again_jobs[0])
            again = self._trouble(again_jobs[0])
        except (CommandFailed, ConnectionUnusable, JobNotSuccessful) as error:
            again = str(error)
        if again:
            return f"{text}, and neither did {old.application}: {again}; {self._what_runs(jobs)}"
        # it goes on, and so the savepoint is out of date
        kept.forget()
        return f"{text}; {old.application} runs again from there as job {again_jobs[0]}"

    def _await_end(self, job_id: str) -> None:
        """Wait for the end of a job that is being canceled, whose cluster may end with it."""
        silent_since_s: float | None = None
        while True:
            try:
                if self.hook.state(job_id).over:
                    return
                silent_since_s = None
            except JobNotSuccessful as error:
                self.log.info("%s", error)
                return
            except (CommandFailed, Unreachable, Refused) as error:
                now_s = time.monotonic()
                if silent_since_s is None:
                    silent_since_s = now_s
                elif now_s - silent_since_s > _ENDS_WITHIN_S:
                    # if it has the key, the old version is refused
                    self.log.warning("Whether job %s has ended is not known: %s", job_id, error)
                    return
            self.check_goes_on()
            time.sleep(_LOOK_AGAIN_S)
