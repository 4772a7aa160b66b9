"""The targets on YARN that deploy a cluster for each job, or each program, that is submitted.

What takes long is begun at once: skein's JVM starts while the options are checked against YARN and
HDFS, the files go up while the program's main builds its graph.  Flink counterparts:
``YarnJobClusterExecutor``, ``ApplicationClusterDeployer``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Final

from yarnflow.client.background import in_background
from yarnflow.client.cluster import JobCluster, JobListener, ProgramCluster
from yarnflow.client.programs.job_key import JobKey
from yarnflow.client.yarn.applications import ApplicationCluster
from yarnflow.client.yarn.follow import Follower, await_first_job, leave
from yarnflow.client.yarn.high_availability import check_quorum, forget_cluster
from yarnflow.client.yarn.job_owners import JobOwners
from yarnflow.client.yarn.services import YarnServices, yarn_services
from yarnflow.client.yarn.shipping import ShippedFile, offload_files, plan_files, stage_jars, start_uploads
from yarnflow.client.yarn.specification import (
    SESSION_NAME,
    PythonEnvironment,
    check_admission,
    container_sizes,
    python_environment,
)
from yarnflow.client.yarn.start import Note, StartWatch
from yarnflow.client.yarn.submission import ApplicationSubmit, Request
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import client
from yarnflow.core.ids import JobId
from yarnflow.core.messages import Fence, JobDetails, JobSubmission, JobSubmitted
from yarnflow.core.ports import DispatcherGateway
from yarnflow.core.yarn import DeploymentMode
from yarnflow.errors import (
    ApplicationFailed,
    JobError,
    YarnError,
    YarnflowError,
)
from yarnflow.process.clock import SystemClock
from yarnflow.staging.cache import ContentCache
from yarnflow.staging.job_keys import KeyTaken
from yarnflow.staging.layout import prepare
from yarnflow.staging.sweep import sweep

logger: Final = logging.getLogger(__name__)

#: a sweep that takes longer goes on at the next submit
_SWEEP_S: Final = 2.0
#: an interrupted command waits so long for its own checks
_CHECKS_S: Final = 10.0


class YarnDeployer:
    """Clusters on YARN that this command deploys; made by :meth:`begin`.

    Parameters
    ----------
    services : YarnServices
    mode : DeploymentMode
    note : callable
        Told what the user may want to know.
    program_files : sequence of str
        A program that runs beside the JobManager, and its files.
    """

    def __init__(
        self,
        services: YarnServices,
        mode: DeploymentMode,
        note: Note,
        program_files: Sequence[str] = (),
    ) -> None:
        self._services = services
        self._mode = mode
        self._note = note
        self._program_files = tuple(program_files)
        self._sizes = container_sizes(services.configuration, mode)
        self._environment = PythonEnvironment("")
        self._files: list[ShippedFile] = []
        self._submits: list[ApplicationSubmit] = []
        self._clusters: dict[JobId, ApplicationCluster] = {}
        self._owners: JobOwners | None = None
        #: job key and generation that are ours and not bound to an application yet
        self._unbound: tuple[str, int] | None = None
        self._checks: list[Future[None]] = []
        self._sweep: Future[None] | None = None
        self._closing: Future[None] | None = None
        self._stopped = False

    @classmethod
    def begin(
        cls,
        configuration: Configuration,
        mode: DeploymentMode,
        note: Note,
        program_files: Sequence[str] = (),
    ) -> YarnDeployer:
        """Check everything that can be checked, and begin what takes long.

        Raises
        ------
        YarnflowError
            YARN, HDFS, the environment or an option does not allow it; nothing was submitted and
            nothing is left.
        """
        container_sizes(configuration, mode)
        services = yarn_services(configuration, os.environ, submits=True)
        try:
            deployer = cls(services, mode, note, program_files)
            try:
                deployer._begin()
            except BaseException:
                deployer.stop(forced=True, failed=False)
                raise
        except BaseException:
            services.close()
            raise
        return deployer

    def _begin(self) -> None:
        self._check(self._new_submit)
        self._cache = ContentCache(self._services.fs, self._services.layout)
        self._uploads = start_uploads(self._files, self._cache)

    def _check(self, prepare_hdfs: Callable[[], object]) -> None:
        configuration = self._services.configuration
        cluster = self._services.cluster
        self._checks = [
            in_background(lambda: check_admission(cluster, configuration, self._sizes), "check-yarn"),
            in_background(lambda: _ignore(prepare_hdfs()), "check-hdfs"),
            in_background(self._plan, "check-files"),
            in_background(lambda: check_quorum(configuration), "check-zookeeper"),
        ]
        for check in self._checks:
            check.result()

    def _plan(self) -> None:
        self._environment = python_environment(self._services.configuration)
        self._files = plan_files(self._services, self._environment, self._program_files)

    def _new_submit(self) -> ApplicationSubmit:
        services = self._services
        if not self._submits:
            prepare(services.fs, services.layout, services.user)
        submit = ApplicationSubmit(services, self._mode, self._sizes, self._note)
        self._submits.append(submit)
        submit.create_directory()
        return submit

    # --- submitting ---------------------------------------------------------

    def submit(self, submission: JobSubmission, required_slots: int) -> JobSubmitted:
        """Deploy a cluster for the job, or attach to the live job of its key."""
        submission = offload_files(submission, lambda: self._cache)
        submission = replace(
            submission, configuration=stage_jars(submission.configuration, lambda: self._cache)
        )
        key = self._with_key(JobKey.of(submission))
        request = Request(submission.name, required_slots, submission=key.put_on(submission))
        return self._submit(request, key, submission.job_id)

    def submit_program(
        self, name: str, arguments: Sequence[str], required_slots: int, key: JobKey
    ) -> JobSubmitted:
        program, *others = (Path(path).name for path in self._program_files)
        options = ("-pyfs", ",".join(others)) if others else ()
        argv = (*options, program, *arguments)
        request = Request(name, required_slots, program_argv=argv, options=self._staged_jars())
        return self._submit(request, self._with_key(key), "")

    def _staged_jars(self) -> dict[str, str]:
        """What of the configuration changes for containers, as its jars are on HDFS then."""
        known = self._services.configuration.to_dict()
        staged = stage_jars(known, lambda: self._cache)
        return {key: text for key, text in staged.items() if known.get(key) != text}

    def start_session(self) -> ApplicationCluster:
        """Deploy a session; returns when its JobManager serves."""
        cluster = self._deploy(Request(SESSION_NAME, options=self._staged_jars()))
        assert cluster is not None, "a session has no key to lose"
        return cluster

    def describe(self, request: Request) -> str:
        """The application as YAML; nothing is written or submitted.  See :func:`describe_submit`."""
        from yarnflow.yarn.spec import describe

        services = self._services
        self._check(lambda: services.layout)
        submit = ApplicationSubmit(services, self._mode, self._sizes, self._note)
        planned = {file.name: file.planned(services.layout, services.fs.uri) for file in self._files}
        master = {file.name for file in self._files if file.master_only}
        spec = submit.planned_spec(
            request,
            self._environment,
            {name: resource for name, resource in planned.items() if name not in master},
            {name: resource for name, resource in planned.items() if name in master},
        )
        return describe(spec)

    def _submit(self, request: Request, key: JobKey, job_id: str) -> JobSubmitted:
        while True:
            if key.key:
                taken = self._take(key, job_id)
                if isinstance(taken, JobSubmitted):
                    return taken
                request = replace(request, job_key=key.key, key_generation=taken.generation)
            cluster = self._deploy(request)
            if cluster is None:
                continue
            found = JobId(job_id) if job_id else self._awaited_job(cluster)
            self._clusters[found] = cluster
            return JobSubmitted(found)

    def _with_key(self, key: JobKey) -> JobKey:
        return self._key_owners().with_key(key) if key.earlier else key

    def _key_owners(self) -> JobOwners:
        if self._owners is None:
            self._owners = JobOwners(self._services, self._note)
        return self._owners

    def _take(self, key: JobKey, job_id: str) -> KeyTaken | JobSubmitted:
        taken = self._key_owners().claim(key, self._current().deployment_id, job_id)
        if isinstance(taken, KeyTaken):
            self._unbound = (key.key, taken.generation)
            return taken
        answer, cluster = taken
        self._clusters[answer.job_id] = cluster
        return answer

    def _current(self) -> ApplicationSubmit:
        """The submit under way; a new one for every further job."""
        if self._submits[-1].application_id:
            self._new_submit()
        return self._submits[-1]

    def _deploy(self, request: Request) -> ApplicationCluster | None:
        """Submit and wait for the JobManager; None = another client has taken the key over."""
        submit = self._current()
        cluster = submit.submit(request, self._environment, self._uploads)
        if request.job_key:
            assert self._owners is not None
            bound = self._owners.keys.set_application(
                request.job_key, request.key_generation, submit.application_id
            )
            self._unbound = None
            if not bound:
                submit.abandon()
                return None
        if self._sweep is None:
            self._sweep = in_background(self._sweep_now, "sweep")
        # what is needed to talk to the JobManager, while there is none
        in_background(lambda: import_module("yarnflow.rpc.gateways"), "import")
        watch = StartWatch(self._services, cluster, self._note, self._sizes.master_mib)
        try:
            watch.await_ready()
            if request.submission is not None:
                watch.await_job(request.submission.job_id)
        except ApplicationFailed as error:
            if not cluster.said_its_end:
                submit.explain(error)
            raise
        submit.accepted = True
        # the JVM has done its work, and the processor and memory it takes are wanted elsewhere
        self._closing = in_background(self._services.close, "close-client")
        self._tell_web_page(cluster)
        return cluster

    def _tell_web_page(self, cluster: ApplicationCluster) -> None:
        try:
            web_address = cluster.application().tracking_url
        except YarnError as error:
            # the job runs, whatever the ResourceManager says just now
            logger.info("No address of the web page: %s", error)
            return
        if web_address:
            self._note(f"Web page: {web_address}")

    def _awaited_job(self, cluster: ApplicationCluster) -> JobId:
        """The program's first; an interrupt does not leave the application without a word."""
        try:
            return await_first_job(cluster)
        except KeyboardInterrupt:
            self._leave(cluster)
            raise

    def _leave(self, application: ApplicationCluster) -> None:
        leave(application, self._services.configuration.get(client.SHUTDOWN_ON_ATTACHED_EXIT), self._note)

    def _sweep_now(self) -> None:
        services = self._services
        sweep(
            services.fs,
            services.layout,
            services.cluster,
            services.user,
            SystemClock().now_ms(),
            forget_cluster,
            services.conf.yarn_cluster,
        )

    # --- the connection of the executor ---------------------------------------

    @property
    def owned(self) -> bool:
        """A cluster on YARN outlives the command."""
        return False

    @property
    def named_by(self) -> str:
        """Id of the last job's application."""
        return self._last().named_by

    @property
    def programs(self) -> ProgramCluster | None:
        return self if self._mode is DeploymentMode.APPLICATION else None

    def follow(self, job_id: JobId, listener: JobListener, timeout_ms: int) -> None:
        """Follow the application of the program; an interrupt leaves it."""
        application = self._clusters[job_id]
        try:
            Follower(application, listener, timeout_ms).follow()
        except KeyboardInterrupt:
            self._leave(application)
            raise

    def cluster_of(self, job_id: JobId) -> JobCluster:
        return self._clusters[job_id]

    def gateway(self) -> DispatcherGateway:
        """That of the last job's cluster."""
        return self._last().gateway()

    def present_gateway(self) -> DispatcherGateway | None:
        """That of the last job's cluster."""
        return self._last().present_gateway()

    def followed(self) -> Fence | None:
        """Of the last job's cluster."""
        return self._last().followed()

    def failure(self) -> YarnflowError | None:
        return self._last().failure()

    def final_details(self, job_id: JobId) -> JobDetails | None:
        return self._clusters[job_id].final_details(job_id)

    def _last(self) -> ApplicationCluster:
        if not self._clusters:
            raise JobError("no job has been submitted yet, so there is no cluster")
        return list(self._clusters.values())[-1]

    def stop(self, *, forced: bool, failed: bool) -> str:
        """Take back what has no JobManager yet; running applications stay.  Idempotent."""
        if self._stopped:
            return ""
        self._stopped = True
        # one may still be making a directory
        wait(self._checks, _CHECKS_S)
        for submit in self._submits:
            submit.abandon()
        if self._unbound is not None and self._owners is not None:
            try:
                self._owners.keys.release(*self._unbound)
            except YarnflowError as error:
                logger.info("Job key not released: %s", error)
        for cluster in self._clusters.values():
            cluster.close()
        # a JVM that is just starting ends with this process; nobody waits for it
        last = in_background(self._services.close, "close-client")
        if not forced:
            wait(filter(None, (self._sweep, self._closing)), _SWEEP_S)
        if any(submit.application_id for submit in self._submits):
            wait([last], _SWEEP_S)
        return ""


def connect_per_job(configuration: Configuration, note: Note) -> YarnDeployer:
    """Factory of the ``yarn-per-job`` target."""
    return YarnDeployer.begin(configuration, DeploymentMode.PER_JOB, note)


def connect_application(
    configuration: Configuration, note: Note, program_files: Sequence[str] = ()
) -> YarnDeployer:
    """Factory of the ``yarn-application`` target."""
    return YarnDeployer.begin(configuration, DeploymentMode.APPLICATION, note, program_files)


def describe_submit(
    configuration: Configuration,
    mode: DeploymentMode,
    request: Request,
    note: Note,
    program_files: Sequence[str] = (),
) -> str:
    """What a submit would ask of YARN, as YAML; checks it as the submit would, changes nothing.

    Raises
    ------
    YarnflowError
        The submit would be refused.
    """
    services = yarn_services(configuration, os.environ)
    return YarnDeployer(services, mode, note, program_files).describe(request)


def _ignore(_: object) -> None:
    return None
