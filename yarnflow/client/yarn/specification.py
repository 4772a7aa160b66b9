"""From options to an application on YARN: sizes, checks, scripts, the specification.

Decides what containers are asked for and what is in them; nothing is uploaded or submitted here.
Flink counterpart: ``YarnClusterDescriptor.startAppMaster`` and ``ClusterSpecification``.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from yarnflow.client.yarn.applications import mode_tag
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import MASTER_ENVIRONMENT, TASKMANAGER_ENVIRONMENT, memory, yarn
from yarnflow.config.options import cluster as cluster_options
from yarnflow.config.options import ha as ha_options
from yarnflow.config.options import job as job_options
from yarnflow.core.resources.memory import driver_memory_of, task_manager_memory_of
from yarnflow.core.yarn import ApplicationSpec, ContainerSpec, DeploymentMode, LocalResource, YarnCluster
from yarnflow.errors import InvalidMemory, InvalidOption
from yarnflow.ha.settings import is_highly_available
from yarnflow.staging.deployment import Deployment
from yarnflow.staging.layout import (
    APPLICATION_TAG,
    STANDBY_ENVIRONMENT,
    STANDBY_TAG,
    StagingLayout,
    cluster_id_of,
    job_tag,
)

#: names of archives in the working directory of every container
DISTRIBUTION: Final = "yarnflow-dist"
HADOOP_CONF: Final = "hadoop-conf"
ENVIRONMENT: Final = "environment"
LOG_SETTINGS: Final = "log.yaml"

MASTER_MODULE: Final = "yarnflow.entrypoint.yarn.master_main"
DRIVER_MODULE: Final = "yarnflow.entrypoint.yarn.driver_main"
TASK_MANAGER_MODULE: Final = "yarnflow.entrypoint.yarn.taskmanager_main"
SESSION_NAME: Final = "yarnflow session"
#: the JobManager's part holds skein's ApplicationMaster, a supervisor and the JobManager
MIN_JOB_MANAGER_MIB: Final = 512
#: jobs a session's master has memory for, unless an option says otherwise
_SESSION_DRIVERS: Final = 2
#: YARN refuses longer tags and others than ASCII
_MAX_TAG: Final = 100


@dataclass(frozen=True, slots=True)
class ContainerSizes:
    """What is asked of YARN for each kind of container."""

    master_mib: int
    master_vcores: int
    task_manager_mib: int
    task_manager_vcores: int
    #: jobs there may be at a time, as many as the master has memory for; 0 = no limit
    drivers: int
    slots: int
    #: drivers beside them that only wait for the loss of another one
    spare_drivers: int = 0
    #: masters there should be at the same time
    masters: int = 1
    #: of each driver; 0 = drivers run in the master's container
    driver_mib: int = 0
    driver_vcores: int = 0


def container_sizes(configuration: Configuration, mode: DeploymentMode) -> ContainerSizes:
    """Sizes of the containers.

    Raises
    ------
    InvalidMemory
        The parts of a container leave too little for one of them.
    InvalidOption
        ``driver.placement`` does not go with other options.
    """
    get = configuration.get
    task_manager = task_manager_memory_of(configuration)
    driver = driver_memory_of(configuration, get(memory.DRIVER_PROCESS_SIZE_MIB))
    job_manager_mib = get(memory.JOBMANAGER_PROCESS_SIZE_MIB)
    if job_manager_mib < MIN_JOB_MANAGER_MIB:
        raise InvalidMemory(
            f"{memory.JOBMANAGER_PROCESS_SIZE_MIB.key} is {job_manager_mib} MiB; the JobManager and skein's "
            f"ApplicationMaster need {MIN_JOB_MANAGER_MIB} MiB"
        )
    drivers = get(yarn.SESSION_DRIVERS)
    in_containers = get(yarn.DRIVER_PLACEMENT) == "container"
    if in_containers:
        _check_placement(configuration)
        drivers = max(drivers, 0)
    elif drivers < 1:
        drivers = _SESSION_DRIVERS if mode is DeploymentMode.SESSION else 1
    # hot: each job's hot spare is a driver of its own
    spare_drivers = {"cold": 0, "warm": 1, "hot": drivers}[get(ha_options.STANDBY_MODE)]
    drivers_mib = 0 if in_containers else (drivers + spare_drivers) * driver.process_mib
    slots = get(cluster_options.TASKMANAGER_SLOTS)
    vcores = get(yarn.CONTAINER_VCORES)
    return ContainerSizes(
        master_mib=job_manager_mib + drivers_mib,
        master_vcores=get(yarn.MASTER_VCORES),
        task_manager_mib=task_manager.process_mib,
        task_manager_vcores=vcores if vcores > 0 else slots,
        drivers=drivers,
        slots=slots,
        spare_drivers=spare_drivers,
        masters=get(ha_options.JOBMANAGERS) if is_highly_available(configuration) else 1,
        driver_mib=driver.process_mib + get(yarn.DRIVER_CONTAINER_OVERHEAD_MIB) if in_containers else 0,
        driver_vcores=get(yarn.DRIVER_CONTAINER_VCORES) if in_containers else 0,
    )


def _check_placement(configuration: Configuration) -> None:
    key = yarn.DRIVER_PLACEMENT.key
    if not is_highly_available(configuration):
        # YARN may call a container lost whose processes run on; only the lease keeps those from writing
        raise InvalidOption(f"{key}: container needs {ha_options.HA_TYPE.key}: zookeeper")
    mode = configuration.get(ha_options.STANDBY_MODE)
    if mode != "cold":
        raise InvalidOption(
            f"{key}: container does not go with {ha_options.STANDBY_MODE.key}: {mode}, whose spare drivers "
            "run in the masters' containers; set it to cold"
        )


def check_admission(cluster: YarnCluster, configuration: Configuration, sizes: ContainerSizes) -> None:
    """Ask YARN whether it could ever run this, before there is anything to run.

    Raises
    ------
    QueueUnavailable
        The message names the queues there are.
    RequestTooLarge
        With the size asked for and YARN's maximum.
    YarnUnavailable
        The ResourceManager does not answer.
    """
    from yarnflow.yarn.web.admission import check_application

    spec = ApplicationSpec(
        name="",
        queue=configuration.get(yarn.APPLICATION_QUEUE),
        tags=(),
        master=ContainerSpec(sizes.master_mib, sizes.master_vcores, ""),
        task_manager=ContainerSpec(sizes.task_manager_mib, sizes.task_manager_vcores, ""),
        driver=ContainerSpec(sizes.driver_mib, sizes.driver_vcores, "") if sizes.driver_mib else None,
        masters=sizes.masters,
    )
    check_application(spec, cluster)


@dataclass(frozen=True, slots=True)
class PythonEnvironment:
    """The interpreter of all containers, and the archive it comes from, if it does."""

    #: absolute, or relative to a container's working directory
    interpreter: str
    #: local archive to upload
    archive: Path | None = None
    #: archive the nodes read themselves
    archive_uri: str = ""


def python_environment(configuration: Configuration) -> PythonEnvironment:
    """What ``python.environment`` means.

    Raises
    ------
    EnvironmentUnusable
        No environment, or one that lacks something; see
        :func:`yarnflow.client.environment.check.require_usable`.
    """
    from yarnflow.client.environment.check import require_usable

    text = configuration.get(yarn.PYTHON_ENVIRONMENT)
    if not text:
        # it runs this client, so it is whole
        own = Path(sys.prefix, "bin", "python")
        return PythonEnvironment(str(own) if own.exists() else sys.executable)
    shipped = f"{ENVIRONMENT}/bin/python"
    scheme = urlsplit(text).scheme
    if scheme == "file":
        # said to be on the nodes; this machine need not be one of them
        return PythonEnvironment(f"{urlsplit(text).path.rstrip('/')}/bin/python")
    if scheme:
        return PythonEnvironment(shipped, archive_uri=text)
    path = Path(text).expanduser().absolute()
    require_usable(path)
    if path.is_dir():
        return PythonEnvironment(str(path / "bin" / "python"))
    return PythonEnvironment(shipped, archive=path)


def initial_task_managers(required_slots: int, sizes: ContainerSizes) -> int:
    """TaskManagers that hold a job's slots."""
    return -(-max(0, required_slots) // sizes.slots)


def shipped_configuration(
    configuration: Configuration, layout: StagingLayout, fs_uri: str, deployment_id: str
) -> dict[str, str]:
    """Options of the containers' processes: the client's, with places on the shared file system."""
    values = configuration.to_dict()
    # the key's owner is written down on its own
    values.pop(job_options.JOB_KEY.key, None)
    if not configuration.is_set(job_options.CHECKPOINT_DIR):
        values[job_options.CHECKPOINT_DIR.key] = fs_uri + layout.checkpoints
    if is_highly_available(configuration):
        if not configuration.is_set(cluster_options.CLUSTER_ID):
            values[cluster_options.CLUSTER_ID.key] = cluster_id_of(deployment_id)
        if not configuration.is_set(ha_options.STORAGE_DIR):
            values[ha_options.STORAGE_DIR.key] = fs_uri + layout.high_availability
    if configuration.is_set(cluster_options.LOG_CONFIG_FILE):
        values[cluster_options.LOG_CONFIG_FILE.key] = LOG_SETTINGS
    return values


def application_spec(
    configuration: Configuration,
    deployment: Deployment,
    sizes: ContainerSizes,
    resources: Mapping[str, LocalResource],
    master_resources: Mapping[str, LocalResource],
) -> ApplicationSpec:
    """The application as it is submitted.

    Parameters
    ----------
    resources : mapping
        Name in every container's working directory → file.
    master_resources : mapping
        Further ones of the master.

    Raises
    ------
    InvalidOption
        Tags YARN would refuse.
    """
    get = configuration.get
    node_label = get(yarn.APPLICATION_NODE_LABEL)
    # drivers in containers of their own would else be in the master's
    master_environment = configuration.with_beginning(MASTER_ENVIRONMENT)
    driver = _driver_container(deployment, sizes, resources, master_environment, node_label)
    return ApplicationSpec(
        name=get(yarn.APPLICATION_NAME) or deployment.name,
        queue=get(yarn.APPLICATION_QUEUE),
        tags=application_tags(configuration, deployment),
        master=ContainerSpec(
            memory_mib=sizes.master_mib,
            vcores=sizes.master_vcores,
            script=container_script(MASTER_MODULE, deployment.python),
            resources={**resources, **master_resources},
            environment=master_environment,
            node_label=node_label,
        ),
        task_manager=ContainerSpec(
            memory_mib=sizes.task_manager_mib,
            vcores=sizes.task_manager_vcores,
            script=container_script(TASK_MANAGER_MODULE, deployment.python),
            resources=dict(resources),
            environment=configuration.with_beginning(TASKMANAGER_ENVIRONMENT),
            node_label=get(yarn.TASKMANAGER_NODE_LABEL) or node_label,
        ),
        driver=driver if sizes.driver_mib else None,
        initial_task_managers=deployment.initial_task_managers,
        masters=deployment.masters,
        max_attempts=get(yarn.APPLICATION_ATTEMPTS),
        node_label=node_label,
        view_acls=get(yarn.VIEW_ACLS),
        modify_acls=get(yarn.MODIFY_ACLS),
        heartbeat_interval_ms=get(yarn.MASTER_HEARTBEAT_INTERVAL_MS),
    )


def _driver_container(
    deployment: Deployment,
    sizes: ContainerSizes,
    resources: Mapping[str, LocalResource],
    environment: Mapping[str, str],
    node_label: str,
) -> ContainerSpec:
    return ContainerSpec(
        memory_mib=sizes.driver_mib,
        vcores=sizes.driver_vcores,
        script=container_script(DRIVER_MODULE, deployment.python),
        resources=dict(resources),
        environment=dict(environment),
        node_label=node_label,
    )


def standby_spec(configuration: Configuration, spec: ApplicationSpec) -> ApplicationSpec:
    """A further master of the cluster whose first one ``spec`` is.

    It has TaskManagers of its own only where a standby is to have everything ready.
    """
    hot = configuration.get(ha_options.STANDBY_MODE) == "hot"
    environment = {**spec.master.environment, STANDBY_ENVIRONMENT: "1"}
    return replace(
        spec,
        tags=(*spec.tags, STANDBY_TAG),
        master=replace(spec.master, environment=environment),
        initial_task_managers=spec.initial_task_managers if hot else 0,
    )


def application_tags(configuration: Configuration, deployment: Deployment) -> tuple[str, ...]:
    """Tags by which clients and the sweep find the application, then the user's own.

    Raises
    ------
    InvalidOption
        One is too long or not ASCII.
    """
    own = (tag.strip() for tag in configuration.get(yarn.TAGS).split(","))
    users = tuple(tag for tag in own if tag)
    for tag in users:
        if len(tag) > _MAX_TAG or not tag.isascii():
            raise InvalidOption(
                f"{yarn.TAGS.key}: {tag[:40]!r} cannot be a tag; YARN takes up to {_MAX_TAG} ASCII characters"
            )
    of_job = (job_tag(deployment.job_id),) if deployment.job_id else ()
    return (APPLICATION_TAG, mode_tag(deployment.mode), deployment.tag, *of_job, *users)


def container_script(module: str, python: str) -> str:
    """The shell text of a container: our own process in place of the shell."""
    # absolute, so that it does not depend on where a child of it runs
    interpreter = shlex.quote(python) if python.startswith("/") else f'"$PWD"/{shlex.quote(python)}'
    # modules among shipped files are found; nobody else may write to a container's folder
    return (
        f'export PYTHONPATH="$PWD/{DISTRIBUTION}:$PWD" HADOOP_CONF_DIR="$PWD/{HADOOP_CONF}"\n'
        f"exec {interpreter} -P -m {module}\n"
    )
