"""TaskManagers: what they have, their logs, and what their threads do."""

from __future__ import annotations

from yarnflow.core.metrics import MetricScope, ScopeKind
from yarnflow.core.resources.diagnostics import ProcessDiagnostics
from yarnflow.core.resources.provider import TaskManagerInfo
from yarnflow.errors import TaskManagerNotFound
from yarnflow.rest.answers import cluster as cluster_answers
from yarnflow.rest.answers import task_managers as answers
from yarnflow.rest.framework.route import Call, TextFile
from yarnflow.rest.handlers import parameters as p
from yarnflow.rest.handlers.context import Cluster
from yarnflow.rest.handlers.files import read_file, stdout_name


def overview(cluster: Cluster, call: Call) -> answers.TaskManagers:
    """The registered TaskManagers."""
    return answers.task_managers(cluster.view.task_managers(), cluster.view.jobs())


def details(cluster: Cluster, call: Call) -> answers.TaskManagerDetails:
    """One of them."""
    info = find(cluster, call)
    scope = MetricScope(ScopeKind.TASK_MANAGER, task_manager_id=info.registration.task_manager_id)
    return answers.task_manager(info, cluster.view.jobs(), cluster.metrics.metrics(scope))


def logs(cluster: Cluster, call: Call) -> cluster_answers.LogList:
    """Its files."""
    return cluster_answers.log_list(_diagnostics(cluster, call).log_files())


def log_file(cluster: Cluster, call: Call) -> TextFile:
    """One of its files."""
    return read_file(_diagnostics(cluster, call), call.get(p.FILE_NAME), call)


def log(cluster: Cluster, call: Call) -> TextFile:
    """Its own log."""
    return read_file(_diagnostics(cluster, call), "", call)


def stdout(cluster: Cluster, call: Call) -> TextFile:
    """What it has printed."""
    diagnostics = _diagnostics(cluster, call)
    return read_file(diagnostics, stdout_name(diagnostics), call)


def thread_dump(cluster: Cluster, call: Call) -> cluster_answers.ThreadDump:
    """What its threads do, and those of its executors."""
    return cluster_answers.thread_dump(_diagnostics(cluster, call).thread_dump())


def find(cluster: Cluster, call: Call) -> TaskManagerInfo:
    """The TaskManager that a call names.

    Raises
    ------
    TaskManagerNotFound
        There is none.
    """
    wanted = call.get(p.TASK_MANAGER_ID)
    for info in cluster.view.task_managers():
        if info.registration.task_manager_id == wanted:
            return info
    # Flink's words; its status for this is 500
    raise TaskManagerNotFound(f"No TaskExecutor registered under {wanted}.")


def _diagnostics(cluster: Cluster, call: Call) -> ProcessDiagnostics:
    return cluster.view.task_manager_diagnostics(find(cluster, call))
