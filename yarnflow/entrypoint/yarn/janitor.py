"""Deletes what an application left on HDFS when nobody else could.

A tiny process in a session of its own that the supervisor in the ApplicationMaster's container
forks before it does anything else.  It outlives the supervisor and does nothing while that lives.
When the supervisor has ended without cleaning up (``kill -9``, ``yarn application -kill``), it
waits until YARN says that the application is over, deletes the application's directories and
ends.  Of a cluster with several masters, each with a janitor of its own, the last one deletes what
they have in common, also in good order: only then is it certain that no other master begins.  What
it cannot do within its time is left to the sweep at the next submit.

Flink leaves the staging files of a killed application where they are.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from yarnflow.core.files import FileSystem
from yarnflow.core.yarn import YarnCluster
from yarnflow.entrypoint.ha_services import SESSIONS_DIRECTORY
from yarnflow.entrypoint.yarn.container import CLUSTER_DIRECTORY, Container
from yarnflow.entrypoint.yarn.sessions_to_close import LeftSessions
from yarnflow.errors import ApplicationNotFound, YarnError, YarnflowError
from yarnflow.staging.deployment import Deployment
from yarnflow.staging.layout import skein_directory
from yarnflow.staging.masters import Forget, live_masters, remove_cluster

if TYPE_CHECKING:
    from yarnflow.entrypoint.yarn.services import ContainerServices

TIME_LIMIT_MS: Final = 60_000
_INTERVAL_MS: Final = 1_000
#: how often it looks for sessions
_LOOK_S: Final = 1.0
_DONE: Final = b"."
#: it must not take the processor from the start of the application, and is ready before the working directory
#: goes, also on a machine that is busy
_NICE: Final = 10


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What is to be deleted, and how."""

    application_id: str
    deployment: Deployment
    fs: FileSystem
    cluster: YarnCluster
    #: deletes what a highly available cluster has in ZooKeeper
    forget: Forget = lambda _options, _secret: None
    #: of this container's processes; they are ended as soon as those are
    sessions: LeftSessions | None = None


def leftovers_of(container: Container, services: ContainerServices) -> Leftovers:
    """What a master's container leaves; imports what is needed to delete it."""
    deployment = container.deployment
    leftovers = Leftovers(container.application_id, deployment, services.fs, services.cluster)
    if not deployment.highly_available:
        return leftovers
    from yarnflow.ha.forget import forget_cluster
    from yarnflow.ha.services import ZooKeeperSettings
    from yarnflow.ha.sessions import close_session_of

    settings = ZooKeeperSettings.of(container.configuration())
    sessions = LeftSessions(
        container.directory / CLUSTER_DIRECTORY / SESSIONS_DIRECTORY,
        container.logs,
        lambda directory, pid: close_session_of(directory, pid, settings),
    )
    return replace(leftovers, forget=forget_cluster, sessions=sessions)


class Janitor:
    """The supervisor's end; made by :func:`start`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def dismiss(self) -> None:
        """Everything has been cleaned up: the process ends.  Idempotent."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        try:
            os.write(descriptor, _DONE)
        except OSError:
            pass  # it is gone already
        os.close(descriptor)


def start(find: Callable[[], Leftovers]) -> Janitor:
    """Fork the process.  Must be called while this one has no other thread.

    Parameters
    ----------
    find : callable
        Called in the new process, at once: it imports what is needed while there is a working directory
        to import from.
    """
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    if (child := os.fork()) == 0:
        # a second fork: whoever adopts it reaps it, and its parent need not
        if os.fork() == 0:
            _run(read_end, find)
        os._exit(0)
    os.waitpid(child, 0)
    os.close(read_end)
    return Janitor(write_end)


def _run(read_end: int, find: Callable[[], Leftovers]) -> None:
    status = 1
    try:
        _detach(read_end)
        leftovers = find()
        # the first call imports what the libraries left for later
        _ended(leftovers)
        if not _await_dismissal(read_end, leftovers.sessions):
            clean_up(leftovers)
        status = 0
    except BaseException as error:  # nothing may run on into the supervisor's code
        _say(f"{type(error).__name__}: {error}")
    finally:
        os._exit(status)


def _await_dismissal(read_end: int, sessions: LeftSessions | None) -> bool:
    """Wait until the supervisor has dismissed this process, or has ended without doing so."""
    while sessions is not None and not select.select([read_end], [], [], _LOOK_S)[0]:
        sessions.look()
    if os.read(read_end, 1) == _DONE:
        return True
    if sessions is not None:
        sessions.close()
    return False


def _detach(read_end: int) -> None:
    """Leave the container's session; keep nothing of it but standard error, a log file."""
    os.setsid()
    # YARN deletes the working directory before this process is done
    os.chdir("/")
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.nice(_NICE)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > 2 and descriptor != read_end:
            try:
                os.close(descriptor)
            except OSError:
                pass  # that of the listing itself


def clean_up(
    leftovers: Leftovers,
    sleep: Callable[[float], None] = time.sleep,
    monotonic: Callable[[], float] = time.monotonic,
) -> bool:
    """Wait for the end of the application, then delete; whether that was done."""
    deadline = monotonic() + TIME_LIMIT_MS / 1000
    while True:
        if _ended(leftovers) and _delete(leftovers):
            return True
        if monotonic() >= deadline:
            _say(f"{leftovers.deployment.application_dir} could not be deleted; the next submit does it")
            return False
        sleep(_INTERVAL_MS / 1000)


def _ended(leftovers: Leftovers) -> bool:
    try:
        return leftovers.cluster.application(leftovers.application_id).state.ended
    except ApplicationNotFound:
        return True
    except YarnError as error:
        _say(str(error))
        return False


def _delete(leftovers: Leftovers) -> bool:
    deployment = leftovers.deployment
    try:
        # asked after this application has ended: of two that end together one sees the other ended
        if not live_masters(leftovers.cluster, deployment.deployment_id, deployment.user):
            remove_cluster(leftovers.fs, deployment.layout, deployment.deployment_id, leftovers.forget)
        leftovers.fs.delete(skein_directory(leftovers.fs.home(), leftovers.application_id))
    except YarnflowError as error:
        _say(str(error))
        return False
    return True


def _say(text: str) -> None:
    try:
        print(f"janitor: {text}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass  # the log may be full or gone
