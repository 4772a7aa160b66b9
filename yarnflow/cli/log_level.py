"""``yarnflow log-level LOGGER LEVEL``: changes what a running cluster logs.

Flink has no counterpart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from yarnflow.cli.common import cluster_options, existing_cluster
from yarnflow.cli.output import Shown, Verb
from yarnflow.core.messages import LogLevel, LogLevelResult
from yarnflow.errors import RpcError

if TYPE_CHECKING:
    from yarnflow.config.configuration import Configuration

_ROOT: Final = "root"
#: the level of the logger above it
_INHERITED: Final = "INHERIT"
_LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "OFF", _INHERITED)


@click.command("log-level", cls=Verb, answer=LogLevelResult)
@click.argument("logger")
@click.argument("level", type=click.Choice(_LEVELS, case_sensitive=False))
@cluster_options
def command(logger: str, level: str, configuration: Configuration) -> Shown:
    """Change the level of LOGGER in JobManager, standbys, TaskManagers and drivers of a cluster.

    LOGGER is its name in log lines, or root.  It holds until a process starts again.  Loggers of Java
    (org.apache.spark…) are those of drivers' JVMs.  INHERIT takes the level of the logger above.
    """
    wanted = LogLevel("" if logger == _ROOT else logger, "" if level == _INHERITED else level.upper())
    with existing_cluster(configuration) as connection:
        result = connection.gateway().change_log_level(wanted)
    failed = [answer for answer in result.processes if answer.error]
    lines = [f"{answer.process}: {answer.error or 'changed'}" for answer in result.processes]
    error = None
    if failed:
        error = RpcError(
            f"{len(failed)} of {len(result.processes)} processes have not changed logger {logger}; see the "
            "lines above, and try again"
        )
    return Shown(result, "\n".join(lines), error=error)
