"""What operators of a cluster do with applications: list them, and empty one in good order.

Behind ``scripts/yarn-list`` and ``scripts/yarn-drain``.  Works without a JVM.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from yarnflow.client.yarn.applications import (
    ApplicationCluster,
    clusters_of,
    connect_application,
    deployment_id_of,
    end_text,
    kill_masters,
    mode_of,
)
from yarnflow.client.yarn.services import YarnServices
from yarnflow.core.messages import JobOverview
from yarnflow.core.yarn import Application, DeploymentMode
from yarnflow.errors import ApplicationFailed, ApplicationNotFound, JobNotFound, RpcTimeout, YarnflowError
from yarnflow.staging.layout import APPLICATION_TAG, cluster_id_of, deployment_tag, skein_directory
from yarnflow.staging.masters import LIVE_STATES, live_masters

POLL_S: Final = 0.5
_LONG_POLL_MS: Final = 2_000


@dataclass(frozen=True, slots=True)
class ListedApplication:
    """A cluster, with its jobs where its JobManager tells them."""

    #: its first master that lives, else its first one
    application: Application
    mode: DeploymentMode | None
    jobs: tuple[JobOverview, ...] = ()
    #: why the jobs are not known; empty when they are
    unknown: str = ""
    #: its other masters
    others: tuple[Application, ...] = ()


def list_applications(
    services: YarnServices, *, user: str = "", ended: bool = False
) -> list[ListedApplication]:
    """Clusters of yarnflow, oldest first.

    Parameters
    ----------
    user : str
        Only this user's; empty = everybody's.
    ended : bool
        Those YARN still remembers, too.
    """
    states = () if ended else LIVE_STATES
    found = services.cluster.applications(tag=APPLICATION_TAG, user=user, states=states)
    return [_with_jobs(services, first, tuple(others)) for first, *others in clusters_of(found)]


def _with_jobs(
    services: YarnServices, application: Application, others: tuple[Application, ...]
) -> ListedApplication:
    mode = mode_of(application)
    if application.state.ended:
        return ListedApplication(application, mode, others=others)
    try:
        cluster = connect_application(services, application)
        try:
            jobs = tuple(cluster.gateway().list_jobs())
        finally:
            cluster.close()
    except YarnflowError as error:
        return ListedApplication(application, mode, unknown=" ".join(str(error).split()), others=others)
    return ListedApplication(application, mode, jobs, others=others)


def format_application(listed: ListedApplication) -> str:
    """An application as text: one line, and one for each of its jobs."""
    app = listed.application
    state = _state_text(app)
    started = datetime.fromtimestamp(app.started_ms / 1000).strftime("%d.%m.%Y %H:%M:%S")
    mode = listed.mode.target if listed.mode else "?"
    containers = "" if app.state.ended else f", {app.running_containers} containers"
    about = f"{mode}, {state}, {app.user}, {app.queue}{containers}"
    lines = [f"{started} : {app.application_id} : {app.name} ({about})"]
    lines += [f"    master {other.application_id} ({_state_text(other)})" for other in listed.others]
    if listed.unknown:
        lines.append(f"    jobs not known: {listed.unknown}")
    for job in sorted(listed.jobs, key=lambda job: job.start_time_ms):
        slots = "" if job.status.terminal else f", {job.slots_allocated}/{job.slots_required} slots"
        lines.append(f"    {job.job_id} : {job.name} ({job.status.value}{slots})")
    return "\n".join(lines)


def _state_text(application: Application) -> str:
    return end_text(application) if application.state.ended else application.state.value


def drain(
    services: YarnServices,
    application_id: str,
    *,
    timeout_ms: int,
    force: bool = False,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> Iterator[str]:
    """Cancel a cluster's jobs one after another, wait for them, end it, look for leftovers.

    Parameters
    ----------
    application_id : str
        Its application; of a highly available cluster any of its masters, also one that has ended.
    timeout_ms : int
        For each job, and for the end of the application.
    force : bool
        Ask nobody: kill all of its masters.

    Yields
    ------
    str
        What was done, a sentence each.

    Raises
    ------
    ApplicationNotFound
        Not one of yarnflow, or it has ended.
    RpcTimeout, ApplicationFailed
        Something did not end in time, or left something behind; the message says what to do.
    """
    application = services.cluster.application(application_id)
    deployment_id = deployment_id_of(application)
    if application.state.ended and not live_masters(services.cluster, deployment_id):
        raise ApplicationNotFound(f"application {application_id} has ended already ({end_text(application)})")
    if force:
        kill_masters(services, deployment_id, sleep)
        yield f"every master of {application_id} was killed"
    else:
        yield from _end_in_good_order(services, application, timeout_ms, now)
    masters = _await_end(services, application_id, deployment_id, timeout_ms, sleep, now)
    for master in masters:
        yield f"application {master.application_id} ended {end_text(master)}"
    yield _leftovers(services, masters, deployment_id, timeout_ms, sleep, now)


def _end_in_good_order(
    services: YarnServices, application: Application, timeout_ms: int, now: Callable[[], float]
) -> Iterator[str]:
    cluster = connect_application(services, application)
    try:
        for job in sorted(cluster.gateway().list_jobs(), key=lambda job: job.start_time_ms):
            if not job.status.globally_terminal:
                yield _cancel(cluster, job, timeout_ms, now)
        if mode_of(application) is DeploymentMode.SESSION:
            cluster.gateway().shut_down_cluster()
            yield "session told to end"
    except (RpcTimeout, ApplicationNotFound):
        raise
    except YarnflowError:
        # a cluster that ends with its job may be gone before it has answered
        if not cluster.application().state.ended:
            raise
    finally:
        cluster.close()


def _cancel(cluster: ApplicationCluster, job: JobOverview, timeout_ms: int, now: Callable[[], float]) -> str:
    deadline_s = now() + timeout_ms / 1000
    details = cluster.gateway().job_details(job.job_id)
    cluster.gateway().cancel_job(job.job_id)
    while not details.overview.status.globally_terminal:
        if now() >= deadline_s:
            raise RpcTimeout(
                f"job {job.name} ({job.job_id}) is still {details.overview.status.value} "
                f"{timeout_ms / 1000:g} s after it was canceled; see yarnflow logs {cluster.application_id}, "
                "or wait longer with --timeout"
            )
        try:
            details = cluster.gateway().await_job_change(job.job_id, details.version, _LONG_POLL_MS)
        except JobNotFound:
            break
        except YarnflowError:
            final = cluster.final_details(job.job_id)
            if final is None:
                raise
            details = final
    return f"job {job.name} ({job.job_id}): {details.overview.status.value}"


def _await_end(
    services: YarnServices,
    application_id: str,
    deployment_id: str,
    timeout_ms: int,
    sleep: Callable[[float], None],
    now: Callable[[], float],
) -> Sequence[Application]:
    """All masters, once each has ended."""
    deadline_s = now() + timeout_ms / 1000
    while True:
        masters = services.cluster.applications(tag=deployment_tag(deployment_id))
        live = [master for master in masters if not master.state.ended]
        if not live:
            return masters or [services.cluster.application(application_id)]
        if now() >= deadline_s:
            which = " and ".join(f"{master.application_id} is still {master.state.value}" for master in live)
            raise ApplicationFailed(
                f"application {which} {timeout_ms / 1000:g} s after its jobs had ended; end it with: "
                f"scripts/yarn-drain --force {application_id}"
            )
        sleep(POLL_S)


def _leftovers(
    services: YarnServices,
    masters: Sequence[Application],
    deployment_id: str,
    timeout_ms: int,
    sleep: Callable[[float], None],
    now: Callable[[], float],
) -> str:
    """Its directories on HDFS go with it, a moment after YARN calls it ended."""
    home = services.fs.home()
    places = [
        services.layout.application(deployment_id),
        f"{services.layout.high_availability}/{cluster_id_of(deployment_id)}",
        *(skein_directory(home, master.application_id) for master in masters),
    ]
    deadline_s = now() + timeout_ms / 1000
    while True:
        left: Sequence[str] = [path for path in places if services.fs.status(path) is not None]
        if not left:
            return "nothing is left of it on YARN and HDFS"
        if now() >= deadline_s:
            raise ApplicationFailed(
                f"application {masters[0].application_id} has left {', '.join(left)} on HDFS; the next "
                f"submit removes it, or: hdfs dfs -rm -r {' '.join(left)}"
            )
        sleep(POLL_S)
