"""Who holds a job key on YARN, and how to reach its job.

The record on HDFS says which application a key belongs to; whether its job still lives is asked
of YARN and, where the JobManager answers, of the JobManager: in a session the job's end is not
the application's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from yarnflow.client.applications import ApplicationCluster, mode_of
from yarnflow.client.yarn_services import YarnServices
from yarnflow.client.yarn_start import Note, StartWatch
from yarnflow.config.options import client
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobSubmitted
from yarnflow.core.ports import Clock
from yarnflow.core.yarn import Application, DeploymentMode
from yarnflow.errors import (
    ApplicationFailed,
    ApplicationNotFound,
    DuplicateJob,
    JobNotFound,
    StorageError,
    YarnflowError,
)
from yarnflow.process.clock import SystemClock
from yarnflow.staging.job_keys import JobKeys, KeyHolder, is_elsewhere, liveness
from yarnflow.staging.layout import deployment_tag

_POLL_S: Final = 0.1


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

    def attach(self, holder: KeyHolder) -> tuple[JobSubmitted, ApplicationCluster] | None:
        """Reach the job of a live holder; None when it has ended by then.

        Raises
        ------
        DuplicateJob
            It is on another YARN.
        """
        found = self._with_application(holder)
        if found is None:
            return None
        try:
            cluster = self._cluster(found)
            if cluster is None:
                self._check_here(found)
                return None
            watch = StartWatch(self._services, cluster, self._note)
            watch.await_ready()
            job_id = found.job_id or _some_job(cluster)
            if not job_id:
                return None
            if watch.await_job(JobId(job_id)).globally_terminal:
                return None
        except (ApplicationFailed, ApplicationNotFound):
            return None
        return JobSubmitted(JobId(job_id), attached_to_existing=True), cluster

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
    """The newest live job of an application whose program decides on its jobs."""
    jobs = [job for job in cluster.gateway().list_jobs() if not job.status.terminal]
    return max(jobs, key=lambda job: job.start_time_ms).job_id if jobs else ""
