"""What ``yarnflow doctor`` checks for which target, and the checks of this machine.

Those of YARN and HDFS are in :mod:`yarnflow.client.diagnose.yarn_checks`.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Final

from yarnflow.client.diagnose.checks import Check
from yarnflow.client.diagnose.yarn_checks import YarnChecks
from yarnflow.client.environment.check import REQUIRED
from yarnflow.client.targets import Target
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import client, memory
from yarnflow.core.resources.memory import driver_memory_of, task_manager_memory_of
from yarnflow.core.yarn import DeploymentMode
from yarnflow.errors import ConfigError

#: executors spill and keep shuffle files there
MIN_FREE_MIB: Final = 1024
#: a JobManager with a hundred TaskManagers and drivers, their connections both ways and files of its own
MIN_OPEN_FILES: Final = 1024
_MIB: Final = 1024 * 1024


def default_target(configuration: Configuration, environ: Mapping[str, str]) -> str:
    """The configured target; without one, YARN where there is a Hadoop configuration."""
    if configuration.is_set(client.TARGET):
        return configuration.get(client.TARGET)
    named = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
    return DeploymentMode.PER_JOB.target if any(environ.get(name) for name in named) else "local"


def checks_for(
    target: Target, configuration: Configuration, environ: Mapping[str, str], *, container: bool = True
) -> tuple[list[Check], Callable[[], None]]:
    """The checks of a target, and what to call when they are over.

    Parameters
    ----------
    container : bool
        On YARN, run an application too.
    """
    checks = [
        Check("Python", python_packages),
        Check("Java", lambda: java(environ)),
        Check("memory", lambda: memory_sizes(configuration)),
        Check("temporary directory", lambda: temporary_space(configuration)),
        Check("open files", open_files),
    ]
    if target.mode is not None:
        on_yarn = YarnChecks(configuration, environ, target.mode)
        return checks + on_yarn.checks(container=container), on_yarn.close
    if not target.owned:
        checks.append(Check("JobManager", lambda: job_manager(configuration)))
    return checks, lambda: None


# --- this machine ----------------------------------------------------------------


def python_packages() -> str:
    """Python and what is installed."""
    versions = {}
    for name in REQUIRED:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            raise ConfigError(f"{name} is not installed in {sys.prefix}; run: pip install {name}") from None
    told = ", ".join(f"{name} {versions[name]}" for name in ("pyspark", "pyarrow", "pandas"))
    return f"{platform.python_version()}, {told}"


def java(environ: Mapping[str, str]) -> str:
    """The Java of drivers and executors on this machine."""
    from yarnflow.spark.launch.java import find_java

    found = find_java(environ)
    return f"{found.version}, {found.program} (from {found.origin})"


def memory_sizes(configuration: Configuration) -> str:
    """Whether the sizes add up."""
    task_manager = task_manager_memory_of(configuration)
    driver = driver_memory_of(configuration, configuration.get(memory.DRIVER_PROCESS_SIZE_MIB))
    return (
        f"TaskManager {task_manager.process_mib} MiB (executor's heap {task_manager.executor_heap_mib}, "
        f"Python {task_manager.python_mib}), driver {driver.process_mib} MiB (heap {driver.heap_mib})"
    )


def open_files() -> str:
    """Whether processes here may have as many connections and files as they need."""
    from yarnflow.rpc.descriptors import highest_limit

    allowed = highest_limit()
    if allowed < MIN_OPEN_FILES:
        raise ConfigError(
            f"a process may have only {allowed} files and connections open here, and a JobManager has some "
            "for each TaskManager, driver and client; raise the hard limit (ulimit -Hn) to "
            f"{MIN_OPEN_FILES} or more"
        )
    return f"{allowed} for each process"


def temporary_space(configuration: Configuration) -> str:
    """Whether there is room for a cluster's files."""
    from yarnflow.process.dirs import base_directory, temporary_directory

    path = base_directory(temporary_directory(configuration))
    free_mib = shutil.disk_usage(path).free // _MIB
    if free_mib < MIN_FREE_MIB:
        raise ConfigError(
            f"only {free_mib} MiB are free in {path}; make room or choose another directory (io.tmp.dirs)"
        )
    if not os.access(path, os.W_OK):
        raise ConfigError(f"{path} cannot be written; choose another directory (io.tmp.dirs)")
    return f"{path}, {free_mib / 1024:.0f} GiB free"


def job_manager(configuration: Configuration) -> str:
    """Whether the standalone cluster answers."""
    from yarnflow.client.remote import connect_remote

    cluster = connect_remote(configuration)
    try:
        overview = cluster.gateway().cluster_overview()
        slots = f"{overview.slots_available} of {overview.slots_total} slots free"
        return f"{overview.task_managers} TaskManagers, {slots}"
    finally:
        cluster.stop(forced=False, failed=False)
