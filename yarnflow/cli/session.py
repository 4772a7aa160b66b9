"""``yarnflow session``: clusters on YARN that many jobs share.

``start`` without ``-d`` follows the session's jobs and ends the session when it is interrupted,
``attach`` follows them and leaves it alone.  ``stop`` refuses while jobs live, unless it is
forced: Flink ends them without a word.  Flink counterpart: ``yarn-session.sh``.
"""

from __future__ import annotations

import os
import signal
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import click

from yarnflow.cli.common import (
    CLEAN_UP_S,
    common_options,
    exit_on_signal,
    terminate_as_interrupt,
)
from yarnflow.cli.flags.flink_flags import SESSION_FLAGS, flink_flags
from yarnflow.cli.flags.option_flags import SESSION, option_flags
from yarnflow.cli.output import CONTEXT, Shown, Verb, is_verbose, wants_json
from yarnflow.cli.view import View, make_view
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import client, cluster, yarn
from yarnflow.core.yarn import Application, DeploymentMode
from yarnflow.errors import ApplicationFailed, HaError, InvalidOption, JobError, RpcError, YarnflowError

if TYPE_CHECKING:
    from yarnflow.client.yarn.applications import ApplicationCluster
    from yarnflow.client.yarn.services import YarnServices


@dataclass(frozen=True, slots=True)
class Session:
    """A session on YARN."""

    application_id: str
    name: str
    #: YARN's
    state: str
    queue: str
    started_ms: int
    running_containers: int


@dataclass(frozen=True, slots=True)
class Sessions:
    """Those that run."""

    sessions: tuple[Session, ...]


@dataclass(frozen=True, slots=True)
class EndedSession:
    """A session that has ended."""

    application_id: str


@click.group("session", context_settings=CONTEXT)
def command() -> None:
    """Start, stop, list or follow sessions on YARN."""


@command.command(
    "start",
    cls=Verb,
    answer="`application_id` and `web_address` of the session, with `-d`; with `-q` what YARN has: `limits`, "
    "`queues`.",
)
@click.option("-d", "--detached", is_flag=True, help="Return once the session serves; it stays.")
@click.option("-q", "--query", is_flag=True, help="Show what YARN has; start nothing.")
@click.option("-id", "--applicationId", "attach_to", hidden=True, help="as session attach")
@click.option("-z", "--zookeeperNamespace", "cluster_id", hidden=True, help="high-availability.cluster-id")
@option_flags(SESSION)
@flink_flags(*SESSION_FLAGS)
@common_options
def start(
    detached: bool,
    query: bool,
    attach_to: str | None,
    cluster_id: str | None,
    values: dict[str, str],
    configuration: Configuration,
) -> Shown:
    """Start a session.

    Its TaskManagers are asked for when jobs need them.
    """
    if query:
        return _resources(configuration)
    if attach_to is not None:
        # yarn-session.sh -id
        return attach_session(attach_to, configuration)
    from yarnflow.client.jars.bring import configuration_with_jars
    from yarnflow.client.yarn.deployer import YarnDeployer

    if wants_json() and not detached:
        raise click.UsageError("--json goes with -d: a session that is followed has no end")
    if cluster_id is not None:
        values[cluster.CLUSTER_ID.key] = cluster_id
    configuration = configuration.with_values(values, source="command line")
    terminate_as_interrupt()
    view = make_view(refresh_ms=configuration.get(client.VIEW_REFRESH_MS), verbose=is_verbose())
    deployer: YarnDeployer | None = None
    forced = False
    try:
        configuration = configuration_with_jars(configuration, view.note)
        deployer = YarnDeployer.begin(configuration, DeploymentMode.SESSION, view.note)
        session = deployer.start_session()
        if not wants_json():
            click.echo(session.application_id)
        chosen = f"-D{yarn.APPLICATION_ID.key}={session.application_id}"
        view.note(f"The session serves.  Submit to it: yarnflow submit -t yarn-session {chosen} PROGRAM")
        if not detached:
            _follow_own(session, configuration, view)
        document = {"application_id": session.application_id, "web_address": session.web_address()}
        return Shown(document)
    except KeyboardInterrupt:
        forced = True
        exit_on_signal(130, CLEAN_UP_S)
        raise
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if deployer is not None:
            deployer.stop(forced=forced, failed=False)
        view.close()


@command.command("stop", cls=Verb, answer=EndedSession)
@click.argument("session_id", metavar="[ID]", required=False)
@click.option("--force", is_flag=True, help="Cancel its jobs; kill it if it does not answer.")
@common_options
def stop(session_id: str | None, force: bool, configuration: Configuration) -> Shown:
    """End a session: the one with this application id, or the only one.

    Refuses while it has live jobs, unless forced.
    """
    with closing(_services(configuration)) as services:
        application = _session(services, configuration, session_id)
        with closing(_reach(services, application)) as session:
            end_session(services, session, force)
    application_id = application.application_id
    return Shown(EndedSession(application_id), f"Session {application_id} has ended.")


@command.command("list", cls=Verb, answer=Sessions)
@common_options
def list_sessions(configuration: Configuration) -> Shown:
    """List your sessions that run."""
    from yarnflow.client.yarn.applications import live_applications

    with closing(_services(configuration)) as services:
        sessions = live_applications(services, DeploymentMode.SESSION)
    found = tuple(
        Session(
            one.application_id,
            one.name,
            one.state.value,
            one.queue,
            one.started_ms,
            max(0, one.running_containers),
        )
        for one in sessions
    )
    return Shown(Sessions(found), "\n".join(map(_line, sessions)) if sessions else "No sessions.")


@command.command("attach", context_settings=CONTEXT)
@click.argument("session_id", metavar="[ID]", required=False)
@common_options
def attach(session_id: str | None, configuration: Configuration) -> None:
    """Follow the jobs of a session until it ends; an interrupt leaves it alone."""
    attach_session(session_id, configuration)


def attach_session(session_id: str | None, configuration: Configuration) -> Shown:
    """Follow the jobs of a session until it ends."""
    view = make_view(refresh_ms=configuration.get(client.VIEW_REFRESH_MS), verbose=is_verbose())
    with closing(_services(configuration)) as services:
        application = _session(services, configuration, session_id)
        view.note(f"Following session {application.application_id} ({application.name}).")
        try:
            with closing(_reach(services, application)) as session:
                _follow(session, configuration, view)
        finally:
            view.close()
    return Shown(None)


def _resources(configuration: Configuration) -> Shown:
    """What YARN has, as ``yarn-session.sh -q`` shows it."""
    with closing(_services(configuration)) as services:
        limits, queues = services.cluster.limits(), services.cluster.queues()
    lines = [
        f"NodeManagers  {limits.active_nodes}",
        f"Memory        {limits.available_memory_mib:,} of {limits.total_memory_mib:,} MiB free, "
        f"largest container {limits.max_memory_mib:,} MiB",
        f"Processors    {limits.available_vcores} of {limits.total_vcores} vcores free, "
        f"largest container {limits.max_vcores}",
    ]
    for queue in queues:
        if queue.leaf:
            used = f", {queue.used_percent:.0f} % used" if queue.used_percent >= 0 else ""
            lines.append(f"Queue         {queue.path} ({queue.state}{used})")
    return Shown({"limits": limits, "queues": list(queues)}, "\n".join(lines))


def end_session(services: YarnServices, session: ApplicationCluster, force: bool) -> None:
    """End a session in good order, or by force.

    Raises
    ------
    JobError
        It has live jobs and is not to be ended by force.
    RpcError, HaError
        Its JobManager does not answer, or none leads, and it is not to be ended by force.
    """
    try:
        live = [job for job in session.gateway().list_jobs() if not job.status.terminal]
        if live and not force:
            jobs = ", ".join(f"{job.name} ({job.job_id}, {job.status.value})" for job in live)
            raise JobError(
                f"session {session.application_id} has live jobs: {jobs}; cancel them first, or use --force"
            )
        session.gateway().shut_down_cluster()
    except (RpcError, HaError):
        if not force:
            raise
        session.kill()
    _await_end(services, session)


def _await_end(services: YarnServices, session: ApplicationCluster) -> None:
    import time

    from yarnflow.client.yarn.start import STATE_S

    deadline_s = time.monotonic() + services.configuration.get(client.CLIENT_TIMEOUT_MS) / 1000
    while not session.application().state.ended:
        if time.monotonic() >= deadline_s:
            raise ApplicationFailed(
                f"session {session.application_id} was told to end and still runs after "
                f"{client.CLIENT_TIMEOUT_MS.key}; kill it with: yarnflow session stop "
                f"{session.application_id} --force"
            )
        time.sleep(STATE_S)


def _follow_own(session: ApplicationCluster, configuration: Configuration, view: View) -> None:
    """Follow a session that ends with this command."""
    view.note("An interrupt ends the session with all of its jobs; start it with -d to keep it.")
    try:
        _follow(session, configuration, view)
    except KeyboardInterrupt:
        view.note(f"Ending session {session.application_id}.")
        try:
            session.gateway().shut_down_cluster()
        except YarnflowError as error:
            view.note(f"It does not answer ({error}); end it with: yarnflow session stop --force")
        raise


def _follow(session: ApplicationCluster, configuration: Configuration, view: View) -> None:
    from yarnflow.client.yarn.follow import Follower

    Follower(session, view, configuration.get(client.CLIENT_TIMEOUT_MS)).follow()


def _services(configuration: Configuration) -> YarnServices:
    from yarnflow.client.yarn.services import yarn_services

    return yarn_services(configuration, os.environ)


def _session(services: YarnServices, configuration: Configuration, session_id: str | None) -> Application:
    from yarnflow.client.yarn.applications import find_application, mode_of

    if session_id is not None and not session_id.strip():
        # a variable of a script that is not set must not end somebody's session
        raise InvalidOption("the session's id is empty; name an application, or leave the argument out")
    application_id = session_id or configuration.get(yarn.APPLICATION_ID)
    application = find_application(services, DeploymentMode.SESSION, application_id)
    mode = mode_of(application)
    if mode is not None and mode is not DeploymentMode.SESSION:
        raise InvalidOption(
            f"application {application.application_id} is of target {mode.target}, not a session; end its "
            f"job with: yarnflow cancel -D{yarn.APPLICATION_ID.key}={application.application_id} JOB"
        )
    return application


def _reach(services: YarnServices, application: Application) -> ApplicationCluster:
    from yarnflow.client.yarn.applications import connect_application

    return connect_application(services, application)


def _line(application: Application) -> str:
    started = datetime.fromtimestamp(max(0, application.started_ms) / 1000).strftime("%d.%m.%Y %H:%M:%S")
    containers = max(0, application.running_containers)
    return (
        f"{started} : {application.application_id} : {application.name} "
        f"({application.state.value}, queue {application.queue}, {containers} containers)"
    )
