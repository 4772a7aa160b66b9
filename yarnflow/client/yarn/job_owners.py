"""Who holds a job key on YARN, and how to reach its job.

The record on HDFS says which application a key belongs to; whether its job still lives is asked
of YARN and, where the JobManager answers, of the JobManager: in a session the job's end is not
the application's.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from yarnflow.client.programs.job_key import JobKey
from yarnflow.client.yarn.applications import ApplicationCluster, mode_of
from yarnflow.client.yarn.services import YarnServices
from yarnflow.client.yarn.start import Note, StartWatch
from yarnflow.config.options import client
from yarnflow.core.ha.program_keys import are_different
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobSubmitted
from yarnflow.core.ports import Clock
from yarnflow.core.yarn import Application, DeploymentMode
from yarnflow.errors import (
    ApplicationFailed,
    ApplicationNotFound,
    DuplicateJob,
    HaError,
    JobNotFound,
    RpcTimeout,
    RpcUnavailable,
    StorageError,
    YarnflowError,
)
from yarnflow.process.clock import SystemClock
from yarnflow.staging.job_keys import JobKeys, KeyHolder, KeyTaken, is_elsewhere, liveness
from yarnflow.staging.layout import deployment_tag

logger: Final = logging.getLogger(__name__)

_POLL_S: Final = 0.1
_MAX_POLL_S: Final = 1.0
#: YARN needs so long at most until an application whose job has ended has ended, too
_PATIENCE_MS: Final = 10_000


class JobOwners:
    """Keys of one user's jobs.

    Parameters
    ----------
    services : YarnServices
    note : callable
        Told why a submit waits.
    """

    def __init__(
        self,
        services: YarnServices,
        note: Note,
        clock: Clock | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._services = services
        self._note = note
        self._sleep = sleep
        self._clock = clock or SystemClock()
        self._yarn_cluster: Final = services.conf.yarn_cluster
        self.keys: Final = JobKeys(services.fs, services.layout, self._clock, self._yarn_cluster)
        self._alive_on_yarn = liveness(
            services.cluster,
            self._clock,
            services.configuration.get(client.CLIENT_TIMEOUT_MS),
            self._yarn_cluster,
        )

    def is_live(self, holder: KeyHolder) -> bool:
        """Whether a holder's job may still run.  In doubt it does."""
        if not self._alive_on_yarn(holder):
            return False
        try:
            cluster = self._cluster(holder)
        except ApplicationNotFound:
            return False
        except YarnflowError:
            return True
        if cluster is None or not holder.job_id:
            return True
        try:
            if cluster.final_details(JobId(holder.job_id)) is not None:
                return False
            return not cluster.gateway().job_details(JobId(holder.job_id)).overview.status.globally_terminal
        except JobNotFound:
            # not submitted yet; in a session perhaps never, or ended so long ago that nobody remembers
            return cluster.mode is not DeploymentMode.SESSION or self._is_young(holder)
        except YarnflowError:
            return True
        finally:
            cluster.close()

    def with_key(self, key: JobKey) -> JobKey:
        """Return a program's key, which an earlier version may have called otherwise.

        That is decided here for good: what the JobManager knows of earlier versions are other records.
        """
        is_earlier = bool(key.earlier) and self.keys.adopt(key.earlier, key.key)
        return replace(key, key=key.earlier if is_earlier else key.key, earlier="")

    def claim(
        self, key: JobKey, deployment_id: str, job_id: str
    ) -> KeyTaken | tuple[JobSubmitted, ApplicationCluster]:
        """Take a key, or reach the live job that has it; waits while its holder has none and lives.

        Parameters
        ----------
        key : JobKey
            From :meth:`with_key`.

        Raises
        ------
        DuplicateJob
            The holder is on another YARN; or it has no live job, does not end, and such a submit is to
            fail (``client.on-existing``).
        StorageError
            See :meth:`yarnflow.staging.job_keys.JobKeys.take`.
        """
        pause_s, waiting_for, since_ms = _POLL_S, -1, 0
        told = False
        while True:
            taken = self.keys.take(key.key, deployment_id, job_id, self.is_live, key.digest)
            if isinstance(taken, KeyTaken):
                return taken
            attached = self._attach(taken)
            if attached is not None:
                answer, cluster = attached
                return replace(answer, other_program=are_different(key.digest, taken.program)), cluster
            if taken.generation != waiting_for:
                pause_s, waiting_for, since_ms = _POLL_S, taken.generation, self._clock.monotonic_ms()
            elif not told and self._clock.monotonic_ms() - since_ms >= _PATIENCE_MS:
                told = True
                self._tell_jobless(taken)
            self._sleep(pause_s)
            pause_s = min(2 * pause_s, _MAX_POLL_S)

    def _tell_jobless(self, holder: KeyHolder) -> None:
        """Its application has been living on without a live job for longer than an end takes."""
        owner = holder.application_id or f"the submit {holder.deployment_id}"
        text = f"job key {holder.key} belongs to {owner}, which lives and has no live job that answers"
        what_now = f"end it with: yarn application -kill {owner}" if holder.application_id else "submit again"
        if self._services.configuration.get(client.ON_EXISTING) == "fail":
            raise DuplicateJob(f"{text}; {what_now}")
        self._note(f"{text[:1].upper()}{text[1:]}; waiting for a job of it or its end, or {what_now}")

    def _attach(self, holder: KeyHolder) -> tuple[JobSubmitted, ApplicationCluster] | None:
        """Reach the job of a live holder; None when there is none now."""
        found = self._with_application(holder)
        if found is None:
            return None
        try:
            cluster = self._cluster(found)
        except ApplicationNotFound:
            return None
        if cluster is None:
            self._check_here(found)
            return None
        job_id = ""
        try:
            job_id = self._live_job(cluster, found)
        finally:
            if not job_id:
                cluster.close()
        return (JobSubmitted(JobId(job_id), attached_to_existing=True), cluster) if job_id else None

    def _live_job(self, cluster: ApplicationCluster, holder: KeyHolder) -> str:
        """The job that has the key; empty when it or its application has ended."""
        watch = StartWatch(self._services, cluster, self._note)
        try:
            watch.await_ready()
            job_id = holder.job_id or _some_job(cluster)
            return job_id if job_id and not watch.await_job(JobId(job_id)).globally_terminal else ""
        except ApplicationFailed:
            return ""

    def _check_here(self, holder: KeyHolder) -> None:
        if is_elsewhere(holder.yarn_cluster, self._yarn_cluster):
            services = self._services
            raise DuplicateJob(
                f"job key {holder.key} belongs to {holder.application_id} of another YARN "
                f"({holder.yarn_cluster}), of which this one ({self._yarn_cluster}) knows nothing; submit "
                f"there or, if that job has ended, run: hdfs dfs -rm -r "
                f"'{services.layout.job_key(holder.key)}'"
            )

    def _with_application(self, holder: KeyHolder) -> KeyHolder | None:
        """The same holder once its application is known."""
        told = False
        while not holder.application_id:
            if not told:
                told = True
                self._note(f"Another submit of job key {holder.key} is under way; waiting for it.")
            self._sleep(_POLL_S)
            try:
                newest = self.keys.holder(holder.key)
            except StorageError:
                continue
            if newest is None or newest.generation != holder.generation or newest.revoked:
                return None
            holder = newest
            if not holder.application_id and not self.is_live(holder):
                return None
        return holder

    def _cluster(self, holder: KeyHolder) -> ApplicationCluster | None:
        """The holder's application; None when YARN has none yet."""
        cluster = self._services.cluster
        application: Application | None = None
        if holder.application_id:
            with suppress(ApplicationNotFound):
                application = cluster.application(holder.application_id)
        if application is None:
            # its client may have died before it could write the id down, or YARN has forgotten the master
            # that held the key first while others live
            found = cluster.applications(tag=deployment_tag(holder.deployment_id), user=self._services.user)
            if not found:
                return None
            application = found[-1]
        return ApplicationCluster(
            self._services, application.application_id, holder.deployment_id, mode_of(application)
        )

    def _is_young(self, holder: KeyHolder) -> bool:
        timeout_ms = self._services.configuration.get(client.CLIENT_TIMEOUT_MS)
        return self._clock.now_ms() - holder.created_ms < timeout_ms


def _some_job(cluster: ApplicationCluster) -> str:
    """The newest live job of an application whose program decides on its jobs; empty = none that answers."""
    try:
        jobs = [job for job in cluster.gateway().list_jobs() if not job.status.terminal]
    except (RpcUnavailable, RpcTimeout, HaError) as error:
        # whether it has ended is YARN's to say
        logger.info("Jobs of application %s: %s", cluster.application_id, error)
        cluster.forget_address()
        return ""
    return max(jobs, key=lambda job: job.start_time_ms).job_id if jobs else ""
