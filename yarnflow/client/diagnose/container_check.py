"""A tiny application on YARN that tells what a job's containers would find.

Decides how it is submitted and cleaned up and what is wrong with its answer.  It gets the same
environment, configuration and package as a job; see :mod:`yarnflow.entrypoint.yarn.container_probe`.
"""

from __future__ import annotations

import json
import platform
import secrets
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from yarnflow.client.yarn.services import YarnServices
from yarnflow.client.yarn.shipping import plan_files, start_uploads
from yarnflow.client.yarn.specification import (
    MIN_JOB_MANAGER_MIB,
    PythonEnvironment,
    container_script,
    python_environment,
)
from yarnflow.config.options import yarn
from yarnflow.core.yarn import Application, ApplicationSpec, ContainerSpec, FinalStatus, LocalResource
from yarnflow.errors import ApplicationFailed, EnvironmentUnusable, YarnflowError
from yarnflow.staging.cache import ContentCache
from yarnflow.staging.layout import prepare, skein_directory

PROBE_MODULE: Final = "yarnflow.entrypoint.yarn.container_probe"
#: not the tag of jobs' applications: nobody should take it for one
TAG: Final = "yarnflow-doctor"
POLL_S: Final = 0.3
#: how long it may wait in the queue and run
TIMEOUT_S: Final = 120.0
#: the same when a node has to fetch and unpack an environment first
ARCHIVE_TIMEOUT_S: Final = 300.0


def probe_container(
    services: YarnServices,
    *,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Run the probe; returns what it found.  Leaves nothing on YARN, and on HDFS only the cache.

    Raises
    ------
    YarnflowError
        It could not be submitted, was not started in time or did not answer.
    """
    environment = python_environment(services.configuration)
    # its JVM starts while files go up
    services.submitter().start()
    prepare(services.fs, services.layout, services.user)
    uploads = start_uploads(plan_files(services, environment), ContentCache(services.fs, services.layout))
    resources, _ = uploads.resources()
    application_id = services.submitter().submit(_spec(services, environment, resources))
    ended = False
    try:
        shipped = bool(environment.archive or environment.archive_uri)
        timeout_s = ARCHIVE_TIMEOUT_S if shipped else TIMEOUT_S
        application = _await_end(services, application_id, timeout_s, sleep, now)
        ended = True
        return _answer(application)
    finally:
        _clean_up(services, application_id, ended)


def problems(found: Mapping[str, Any]) -> list[str]:
    """What of a probe's answer keeps jobs from running; empty = nothing."""
    wrong = []
    own, there = platform.python_version(), str(found.get("python", ""))
    if own.split(".")[:2] != there.split(".")[:2]:
        wrong.append(f"Python {there} there and {own} here; {yarn.PYTHON_ENVIRONMENT.key} names another one")
    for name, reason in dict(found.get("failed", {})).items():
        wrong.append(f"{name} cannot be imported ({reason}); install it into the environment")
    if "java_error" in found:
        wrong.append(f"Java: {found['java_error']}")
    if not found.get("hadoop_conf"):
        wrong.append("the Hadoop configuration did not arrive")
    return wrong


def summary(found: Mapping[str, Any]) -> str:
    """One line about a probe's answer."""
    versions = dict(found.get("versions", {}))
    names = ("pyspark", "pyarrow", "pandas", "cloudpickle")
    told = ", ".join(f"{name} {versions[name]}" for name in names if name in versions)
    return f"on {found.get('host')}: Python {found.get('python')}, Java {found.get('java')}, {told}"


def _spec(
    services: YarnServices, environment: PythonEnvironment, resources: Mapping[str, LocalResource]
) -> ApplicationSpec:
    get = services.configuration.get
    node_label = get(yarn.APPLICATION_NODE_LABEL)
    container = ContainerSpec(
        memory_mib=MIN_JOB_MANAGER_MIB,
        vcores=1,
        script=container_script(PROBE_MODULE, environment.interpreter),
        resources=dict(resources),
        node_label=node_label,
    )
    return ApplicationSpec(
        name="yarnflow doctor",
        queue=get(yarn.APPLICATION_QUEUE),
        # the last one is this check's own, by which an interrupted submit is undone
        tags=(TAG, f"{TAG}-{secrets.token_hex(8)}"),
        master=container,
        task_manager=container,
        node_label=node_label,
    )


def _await_end(
    services: YarnServices,
    application_id: str,
    timeout_s: float,
    sleep: Callable[[float], None],
    now: Callable[[], float],
) -> Application:
    deadline_s = now() + timeout_s
    while True:
        application = services.cluster.application(application_id)
        if application.state.ended:
            return application
        if now() >= deadline_s:
            said = f": {' '.join(application.diagnostics.split())}" if application.diagnostics else ""
            raise ApplicationFailed(
                f"application {application_id} was still {application.state.value} after {timeout_s:g} s and "
                f"was killed{said}; is queue {application.queue} full?"
            )
        sleep(POLL_S)


def _answer(application: Application) -> dict[str, Any]:
    said = " ".join(application.diagnostics.split())
    if application.final_status is FinalStatus.SUCCEEDED:
        try:
            found = json.loads(application.diagnostics)
            if isinstance(found, dict):
                return found
        except ValueError:
            pass
    raise EnvironmentUnusable(
        f"application {application.application_id} ended {application.final_status.value} without an answer"
        f"{f': {said}' if said else ''}; see yarnflow logs {application.application_id}"
    )


def _clean_up(services: YarnServices, application_id: str, ended: bool) -> None:
    try:
        if not ended:
            services.submitter().kill(application_id)
        # skein deletes it at a good end only
        services.fs.delete(skein_directory(services.fs.home(), application_id))
    except YarnflowError:
        pass  # whatever is wrong is being told already
