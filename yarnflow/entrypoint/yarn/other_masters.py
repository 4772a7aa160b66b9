"""The other masters of a highly available cluster on YARN, as one of them sees them.

Each master is an application of its own, so that nothing ends all of them at once but their work's
end.  The client leaves the specification of a further one in the cluster's directory; it is submitted
from here, with a JVM that lives only as long as that takes.  Decides that there are never more than
wanted, counting those that wait for room; never when one is needed.  Flink has no counterpart: YARN
starts its masters again one after the other.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from yarnflow.core.files import FileSystem
from yarnflow.core.yarn import Application, ApplicationState, YarnSubmitter
from yarnflow.errors import YarnflowError
from yarnflow.staging.deployment import ApplicationDirectory, Deployment
from yarnflow.staging.layout import master_tag, skein_directory
from yarnflow.staging.masters import live_masters

if TYPE_CHECKING:
    from yarnflow.entrypoint.yarn.services import ContainerServices

logger: Final = logging.getLogger(__name__)

_ID_BYTES: Final = 4
#: a submit that is given up has undone itself within this time, unless YARN does not answer
_GIVE_UP_S: Final = 15.0


class Masters:
    """A :class:`~yarnflow.process.channel.supervisor_end.MasterOwner`, and what is known of the others.

    Parameters
    ----------
    deployment : Deployment
    application_id : str
        Of this master.
    services : callable
        HDFS and YARN; blocks until there is a connection.
    submitter : callable
        Makes a client of YARN that submits; replaced in tests.
    """

    def __init__(
        self,
        deployment: Deployment,
        application_id: str,
        services: Callable[[], ContainerServices],
        submitter: Callable[[ContainerServices], YarnSubmitter] | None = None,
    ) -> None:
        self._deployment = deployment
        self._application_id = application_id
        self._services = services
        self._new_submitter = submitter or _submitter
        self._lock = threading.Lock()
        #: the thread of a submit under way
        self._starting: threading.Thread | None = None
        #: what it submits with, once it does
        self._submitter: YarnSubmitter | None = None
        self._closed = False

    def start_master(self) -> None:
        """Have one more started, in a thread, unless there are enough or one is on its way."""
        with self._lock:
            if self._starting is not None or self._closed:
                return
            self._starting = threading.Thread(target=self._start, name="start-master", daemon=True)
            self._starting.start()

    def others(self) -> Sequence[Application]:
        """Applications of the other masters that have not ended.  Raises YarnError."""
        found = live_masters(self._services().cluster, self._deployment.deployment_id, self._deployment.user)
        return [application for application in found if application.application_id != self._application_id]

    def end_those_that_wait(self) -> None:
        """The cluster is over: nobody needs a master that has not begun; never raises for YARN.

        Those that run see the end by themselves, and end in the same way.  One that is just being submitted
        is given up first, or YARN might have it only after it was looked for.
        """
        with self._lock:
            self._closed = True
            starting, submitter = self._starting, self._submitter
        if submitter is not None:
            submitter.abort()
        if starting is not None:
            starting.join(_GIVE_UP_S)
        try:
            for application in self.others():
                if application.state is not ApplicationState.RUNNING:
                    logger.info("Ending master %s, which has not begun.", application.application_id)
                    self._kill(application.application_id)
        except YarnflowError as error:
            logger.warning("Masters that have not begun are left: %s", error)

    def _start(self) -> None:
        try:
            self._submit()
        except YarnflowError as error:
            logger.warning("No further master could be started: %s", error)
        finally:
            with self._lock:
                self._starting = None

    def _submit(self) -> None:
        services = self._services()
        others = self.others()
        if 1 + len(others) >= self._deployment.masters:
            ids = ", ".join(application.application_id for application in others)
            logger.info("No further master is started: %s has not ended.", ids)
            return
        spec = _directory(services.fs, self._deployment).read_application()
        # a tag that no other application has, by which a submit that fails half-way is undone
        spec = replace(spec, tags=(*spec.tags, master_tag(secrets.token_hex(_ID_BYTES))))
        submitter = self._new_submitter(services)
        with self._lock:
            if self._closed:
                return
            self._submitter = submitter
        try:
            application_id = submitter.submit(spec, self._delete_files)
        finally:
            with self._lock:
                self._submitter = None
            submitter.close()
        logger.info("Application %s was submitted as a further master of this cluster.", application_id)

    def _kill(self, application_id: str) -> None:
        """End one that has not begun, and so has nobody who clears up after it."""
        self._services().cluster.kill(application_id)
        self._delete_files(application_id)

    def _delete_files(self, application_id: str) -> None:
        fs = self._services().fs
        fs.delete(skein_directory(fs.home(), application_id))


def _directory(fs: FileSystem, deployment: Deployment) -> ApplicationDirectory:
    return ApplicationDirectory(fs, deployment.layout, deployment.deployment_id)


def _submitter(services: ContainerServices) -> YarnSubmitter:
    from yarnflow.yarn.submitter import SkeinSubmitter

    return SkeinSubmitter(services.conf, services.cluster, os.environ, class_archive=False)
