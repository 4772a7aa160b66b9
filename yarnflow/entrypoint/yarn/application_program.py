"""The user's program beside the JobManager (``yarn-application``).

It is run by ``yarnflow submit`` in a process of its own, as a child of the supervisor, with this
container's JobManager as target; so main() does there exactly what it does on a client, and
cannot harm the JobManager.  Flink counterpart: ``ApplicationDispatcherBootstrap``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import job
from yarnflow.entrypoint.client_program import client_command, options_of_client, write_options
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
    options = options_of_client(configuration, address, attached=True)
    return options.with_values({job.JOB_KEY.key: job_key}, source="application")


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
        command=client_command("submit", options, *container.deployment.program_argv),
        log_file=directory.logs / f"{PROGRAM}.out",
        cwd=container.directory,
    )

    def ended(child: Child, exit_status: int, again: bool) -> None:
        on_end(exit_status, child.output_tail())

    supervisor.start(name, lambda: spec, NEVER, ended)
