"""The cluster as a whole and its JobManager."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable
from datetime import datetime
from typing import NoReturn

from yarnflow.config.secrets import masked_text
from yarnflow.rest.answers import cluster as answers
from yarnflow.rest.answers.shapes import Empty
from yarnflow.rest.framework.errors import RestError
from yarnflow.rest.framework.route import Call, TextFile
from yarnflow.rest.handlers import parameters as p
from yarnflow.rest.handlers.context import Cluster
from yarnflow.rest.handlers.files import read_file, stdout_name


def overview(cluster: Cluster, call: Call) -> answers.Overview:
    """Counts of TaskManagers, slots and jobs."""
    return answers.overview(cluster.view.cluster_overview(), cluster.info.revision)


def dashboard_configuration(cluster: Cluster, call: Call) -> answers.DashboardConfiguration:
    """What a dashboard needs to know."""
    info = cluster.info
    return answers.dashboard_configuration(
        info.refresh_interval_ms, info.version, info.revision, datetime.now().astimezone(), info.features
    )


def shut_down(cluster: Cluster, call: Call) -> Empty:
    """Cancel every job and end the cluster."""
    cluster.view.shut_down_cluster()
    return Empty()


def configuration(cluster: Cluster, call: Call) -> list[answers.ConfigurationEntry]:
    """The cluster's options, secrets hidden."""
    return answers.configuration(cluster.info.configuration)


def job_configuration(cluster: Cluster, call: Call) -> list[answers.ConfigurationEntry]:
    """The same, asked for by a job."""
    cluster.job(call.get(p.JOB_ID))
    return configuration(cluster, call)


def environment(cluster: Cluster, call: Call) -> answers.Environment:
    """What runs the JobManager."""
    return answers.Environment(
        answers.Runtime(
            version=f"{platform.python_implementation()} {platform.python_version()}",
            arch=platform.machine(),
            options=[masked_text(text) for text in sys.orig_argv[1:]],
        ),
        list(dict.fromkeys(path for path in sys.path if path)),
    )


def job_environment(cluster: Cluster, call: Call) -> answers.Environment:
    """The same, asked for by a job."""
    cluster.job(call.get(p.JOB_ID))
    return environment(cluster, call)


def leadership(cluster: Cluster, call: Call) -> answers.LeadershipAnswer:
    """Who leads, and who stands by."""
    return answers.leadership(cluster.view.leadership())


def logs(cluster: Cluster, call: Call) -> answers.LogList:
    """The JobManager's files."""
    return answers.log_list(cluster.diagnostics.log_files())


def log_file(cluster: Cluster, call: Call) -> TextFile:
    """One of its files."""
    return read_file(cluster.diagnostics, call.get(p.FILE_NAME), call)


def log(cluster: Cluster, call: Call) -> TextFile:
    """Its own log."""
    return read_file(cluster.diagnostics, "", call)


def stdout(cluster: Cluster, call: Call) -> TextFile:
    """What it has printed."""
    return read_file(cluster.diagnostics, stdout_name(cluster.diagnostics), call)


def thread_dump(cluster: Cluster, call: Call) -> answers.ThreadDump:
    """What its threads do."""
    return answers.thread_dump(cluster.diagnostics.thread_dump())


def refuse(reason: str) -> Callable[[Cluster, Call], NoReturn]:
    """A handler for what has no counterpart here: 501 with the reason."""

    def handler(cluster: Cluster, call: Call) -> NoReturn:
        raise RestError(501, reason)

    return handler
