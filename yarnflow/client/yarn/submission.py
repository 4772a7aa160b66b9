"""One application's way to YARN: directory, files, submit, and the way back if it is given up.

Until YARN has the application there are only files, which a sweep finds; from then on it is
complete.  Whoever interrupts the submit before the JobManager serves gets everything taken away
again at once, the application as well.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

from yarnflow.client.background import in_background, run_into
from yarnflow.client.yarn.aggregated_logs import CollectedLine, collected_lines
from yarnflow.client.yarn.applications import ApplicationCluster, kill_masters
from yarnflow.client.yarn.high_availability import forget_cluster
from yarnflow.client.yarn.services import YarnServices
from yarnflow.client.yarn.shipping import Uploads
from yarnflow.client.yarn.specification import (
    ContainerSizes,
    PythonEnvironment,
    application_spec,
    initial_task_managers,
    shipped_configuration,
    standby_spec,
)
from yarnflow.client.yarn.start import Note, log_tail
from yarnflow.config.options import yarn
from yarnflow.core.messages import JobSubmission
from yarnflow.core.yarn import ApplicationSpec, DeploymentMode, LocalResource
from yarnflow.errors import ApplicationFailed, YarnflowError, YarnUnavailable
from yarnflow.staging.deployment import ApplicationDirectory, Deployment
from yarnflow.staging.layout import DEPLOYMENT_FILE, SECRET_FILE, SUBMISSION_FILE, skein_directory
from yarnflow.staging.masters import live_masters, remove_cluster

logger: Final = logging.getLogger(__name__)

_SECRET_BYTES: Final = 32
#: a submit that is under way is awaited so long before its application is looked for by tag
_UNDER_WAY_S: Final = 30.0
#: aggregated logs come a while after the end
_LOG_TRIES: Final = 10
_LOG_PAUSE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Request:
    """What one application is submitted for."""

    #: of the job, the program or the session
    name: str
    required_slots: int = 0
    #: the job it starts with
    submission: JobSubmission | None = None
    #: what is given to ``yarnflow submit`` beside the JobManager: options, program, its arguments
    program_argv: tuple[str, ...] = ()
    job_key: str = ""
    key_generation: int = -1
    #: of the containers' configuration, over the client's: where jars have been copied to
    options: Mapping[str, str] = field(default_factory=dict)


class ApplicationSubmit:
    """Submits one application.

    Parameters
    ----------
    services : YarnServices
    mode : DeploymentMode
    sizes : ContainerSizes
    note : callable
        Told when YARN has the application.
    """

    def __init__(
        self,
        services: YarnServices,
        mode: DeploymentMode,
        sizes: ContainerSizes,
        note: Note,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.deployment_id: Final = secrets.token_hex(8)
        self.directory: Final = ApplicationDirectory(services.fs, services.layout, self.deployment_id)
        self._services = services
        self._mode = mode
        self._sizes = sizes
        self._note = note
        self._sleep = sleep
        self._secret = secrets.token_hex(_SECRET_BYTES)
        self._submitted: Future[str] | None = None
        self._created = False
        #: the JobManager serves: nothing is taken back any more
        self.accepted = False
        self.application_id = ""

    def create_directory(self) -> None:
        """Make the application's directory, which shows whether HDFS can be written to.

        Raises
        ------
        StorageError
            It cannot: safe mode, permissions, no NameNode.
        """
        self._created = True
        self.directory.create()

    def submit(
        self, request: Request, environment: PythonEnvironment, uploads: Uploads
    ) -> ApplicationCluster:
        """Write what the containers need and submit; returns when YARN has the application.

        Raises
        ------
        YarnflowError
            YARN or HDFS refused.
        """
        everywhere, master = uploads.resources()
        # again: main() and the uploads may have taken longer than a sweep grants a submit that died; from
        # here on each file that is written shows that this one lives
        self.directory.create()
        deployment = self.deployment(request, environment)
        master_files = [SUBMISSION_FILE] if request.submission is not None else []
        written = {
            name: in_background(write, f"write-{name}") for name, write in self._writes(deployment, request)
        }
        own = {name: future.result() for name, future in written.items()}
        spec = application_spec(
            self._services.configuration,
            deployment,
            self._sizes,
            {**everywhere, DEPLOYMENT_FILE: own[DEPLOYMENT_FILE], SECRET_FILE: own[SECRET_FILE]},
            {**master, **{name: own[name] for name in master_files}},
        )
        if deployment.masters > 1:
            self.directory.write_application(standby_spec(self._services.configuration, spec))
        # never in the main thread: an interrupt must not lose the id of an application YARN has
        self._submitted = Future()
        run_into(self._submitted, lambda: self._submit(spec), "submit")
        self.application_id = self._submitted.result()
        self._note(
            f"Application {self.application_id} ({spec.name}) has been submitted to queue {spec.queue}."
        )
        self._set_priority()
        return ApplicationCluster(
            self._services, self.application_id, self.deployment_id, self._mode, self._secret
        )

    def _submit(self, spec: ApplicationSpec) -> str:
        return self._services.submitter().submit(spec, self._delete_skein_files)

    def deployment(self, request: Request, environment: PythonEnvironment) -> Deployment:
        """What the containers are told."""
        services = self._services
        submission = request.submission
        return Deployment(
            deployment_id=self.deployment_id,
            mode=self._mode,
            staging_uri=services.fs.uri + services.layout.root,
            application_dir=self.directory.path,
            user=services.user,
            yarn_cluster=services.conf.yarn_cluster,
            configuration=shipped_configuration(
                services.configuration.with_values(request.options, source="jars"),
                services.layout,
                services.fs.uri,
                self.deployment_id,
            ),
            python=environment.interpreter,
            required_slots=request.required_slots,
            initial_task_managers=initial_task_managers(request.required_slots, self._sizes),
            job_key=request.job_key,
            key_generation=request.key_generation,
            program_argv=request.program_argv,
            drivers=self._sizes.drivers,
            spare_drivers=self._sizes.spare_drivers,
            masters=self._sizes.masters,
            job_id=submission.job_id if submission is not None else "",
            name=request.name,
        )

    def planned_spec(
        self,
        request: Request,
        environment: PythonEnvironment,
        everywhere: dict[str, LocalResource],
        master: dict[str, LocalResource],
    ) -> ApplicationSpec:
        """The specification with files that have not been written; for ``--dry-run``."""
        names = [DEPLOYMENT_FILE, SECRET_FILE, *([SUBMISSION_FILE] if request.submission is not None else [])]
        own = {name: LocalResource(self._services.fs.uri + self.directory.file(name)) for name in names}
        return application_spec(
            self._services.configuration,
            self.deployment(request, environment),
            self._sizes,
            {**everywhere, DEPLOYMENT_FILE: own[DEPLOYMENT_FILE], SECRET_FILE: own[SECRET_FILE]},
            {**master, **{name: own[name] for name in names[2:]}},
        )

    def explain(self, failure: ApplicationFailed) -> None:
        """Add the last lines of the master's log to an application's early end, if they can be had."""
        for _ in range(_LOG_TRIES if self.application_id else 0):
            try:
                services = self._services
                lines = collected_lines(self.application_id, services.user, services.environ)
                text = log_tail(_as_far_as_readable(lines))
            except YarnflowError as error:
                logger.info("No log of %s: %s", self.application_id, error)
                text = ""
            if text:
                failure.add_note(text)
                return
            self._sleep(_LOG_PAUSE_S)

    def abandon(self) -> None:
        """Take everything back, unless the JobManager serves.  Idempotent; never raises for YARN or HDFS."""
        if self.accepted or not self._created:
            return
        self._created = False
        application_ids = self._application_ids()
        for application_id in application_ids:
            self._note(f"Ending application {application_id}: its job was not accepted yet.")
            self._try("kill the application", lambda: self._services.submitter().kill(application_id))  # noqa: B023
            self._try("delete skein's files", lambda: self._delete_skein_files(application_id))  # noqa: B023
        if application_ids and self._sizes.masters > 1:
            # one may just have been starting another
            self._try("kill all masters", lambda: kill_masters(self._services, self.deployment_id))
        self._try("delete the application's directory", self._remove_cluster)

    def _remove_cluster(self) -> None:
        remove_cluster(self._services.fs, self._services.layout, self.deployment_id, forget_cluster)

    def _application_ids(self) -> Sequence[str]:
        if not self.application_id and self._submitted is not None:
            try:
                self.application_id = self._submitted.result(_UNDER_WAY_S)
            except Exception as error:
                logger.info("The submit under way ended with: %s", error)
        known = [self.application_id] if self.application_id else []
        if self._submitted is None or (known and self._sizes.masters == 1):
            return known
        try:
            found = live_masters(self._services.cluster, self.deployment_id, self._services.user)
        except YarnflowError as error:
            logger.info("Cannot look for the application: %s", error)
            return known
        # the first master last: while it leads it starts others in place of those that are gone
        return [*(app.application_id for app in found if app.application_id not in known), *known]

    def _delete_skein_files(self, application_id: str) -> None:
        self._services.fs.delete(skein_directory(self._services.fs.home(), application_id))

    def _set_priority(self) -> None:
        priority = self._services.configuration.get(yarn.APPLICATION_PRIORITY)
        if priority < 0:
            return
        try:
            self._services.cluster.set_priority(self.application_id, priority)
        except YarnflowError as error:
            self._note(f"YARN did not take {yarn.APPLICATION_PRIORITY.key} {priority}: {error}")

    def _writes(
        self, deployment: Deployment, request: Request
    ) -> Sequence[tuple[str, Callable[[], LocalResource]]]:
        submission = request.submission

        def write_deployment() -> LocalResource:
            self.directory.write_deployment(deployment)
            return self.directory.resource(DEPLOYMENT_FILE)

        def write_secret() -> LocalResource:
            self.directory.write_secret(self._secret)
            return self.directory.resource(SECRET_FILE)

        def write_submission() -> LocalResource:
            assert submission is not None
            self.directory.write_submission(submission)
            return self.directory.resource(SUBMISSION_FILE)

        writes = [(DEPLOYMENT_FILE, write_deployment), (SECRET_FILE, write_secret)]
        return [*writes, (SUBMISSION_FILE, write_submission)] if submission is not None else writes

    def _try(self, what: str, action: Callable[[], object]) -> None:
        try:
            action()
        except YarnflowError as error:
            self._note(f"Could not {what} of this submit ({error}); a later submit will sweep it away.")


def _as_far_as_readable(lines: Iterator[CollectedLine]) -> Iterator[CollectedLine]:
    """Logs that are cut short explain more than none."""
    found = False
    try:
        for line in lines:
            found = True
            yield line
    except YarnUnavailable as error:
        if not found:
            raise
        logger.info("%s", error)
