"""The user's program beside the JobManager (``yarn-application``).

It is run by ``yarnflow submit`` in a process of its own, as a child of the supervisor, with this
container's JobManager as target; so main() does there exactly what it does on a client, and
cannot harm the JobManager.  Flink counterpart: ``ApplicationDispatcherBootstrap``.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from yarnflow.config.conf_file import CONF_FILE_NAME
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import client, cluster, ha, job
from yarnflow.entrypoint.yarn.container import Container
from yarnflow.process.dirs import ClusterDirectory
from yarnflow.process.spawn import ProcessSpec
from yarnflow.process.supervisor import NEVER, Child, Supervisor

PROGRAM: Final = "program"


def program_options(configuration: Configuration, address: str, job_key: str) -> Configuration:
    """The options of the program's client.

    Parameters
    ----------
    configuration : Configuration
        The container's.
    address : str
        Where the JobManager serves, ``host:port``.
    job_key : str
        The application's, which its jobs share: their names may be those of other applications' jobs.
    """
    host, _, port = address.rpartition(":")
    return configuration.with_values(
        {
            client.TARGET.key: "remote",
            client.ATTACHED.key: "true",
            cluster.JOBMANAGER_RPC_ADDRESS.key: host,
            cluster.JOBMANAGER_RPC_PORT.key: port,
            job.JOB_KEY.key: job_key,
            # of this master and no other: should another one lead, main() may be run again there
            ha.HA_TYPE.key: "none",
        },
        source="application",
    )


def write_options(configuration: Configuration, directory: Path) -> None:
    """Write a configuration directory that ``yarnflow submit`` reads."""
    directory.mkdir(mode=0o700, exist_ok=True)
    # a JSON string is a YAML string
    lines = [
        f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in configuration.to_dict().items()
    ]
    path = directory / CONF_FILE_NAME
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.writelines(lines)


def start(
    container: Container,
    directory: ClusterDirectory,
    configuration: Configuration,
    supervisor: Supervisor,
    on_end: Callable[[int, str], None],
    name: str = PROGRAM,
) -> None:
    """Start the program.

    Parameters
    ----------
    configuration : Configuration
        From :func:`program_options`.
    on_end : callable
        ``(exit status, last lines of output)``.
    name : str
        Of the process; one that was ended may still be there.
    """
    options = directory.path / PROGRAM
    write_options(configuration, options)
    spec = ProcessSpec(
        name=PROGRAM,
        command=(
            *(sys.executable, "-m", "yarnflow.cli", "submit", "--conf-dir", str(options)),
            *container.deployment.program_argv,
        ),
        log_file=directory.logs / f"{PROGRAM}.out",
        cwd=container.directory,
    )

    def ended(child: Child, exit_status: int, again: bool) -> None:
        on_end(exit_status, child.output_tail())

    supervisor.start(name, lambda: spec, NEVER, ended)
