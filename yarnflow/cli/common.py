"""What several verbs share: options, the configuration they make, signals."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from yarnflow.errors import InvalidOption

if TYPE_CHECKING:
    # `yarnflow --help` and `version` read no configuration and pay for none of it
    from yarnflow.client.cluster import ClusterConnection
    from yarnflow.config.configuration import Configuration

F = TypeVar("F", bound=Callable[..., Any])

CONF_DIR_VARIABLE: Final = "YARNFLOW_CONF_DIR"
_HELP_NAMES: Final = {"help_option_names": ["-h", "--help"]}
CONTEXT: Final[dict[str, Any]] = {**_HELP_NAMES}


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command in the same good order as an interrupt does."""


def verbose_requested(argv: Sequence[str]) -> bool:
    """Whether ``--verbose`` is among the options of the command (not of the program)."""
    for argument in argv:
        if argument == "--verbose":
            return True
        if argument.endswith(".py"):
            return False
    return False


def common_options(function: F) -> F:
    """``-D``, ``--conf-dir`` and ``--verbose``."""
    for option in (
        click.option("--verbose", is_flag=True, help="Show tracebacks and times."),
        click.option(
            "--conf-dir",
            type=click.Path(path_type=Path),
            help=f"Directory of yarnflow-conf.yaml and log.yaml; default: {CONF_DIR_VARIABLE}.",
        ),
        click.option("-D", "dynamic", multiple=True, metavar="KEY=VALUE", help="Set an option.  Repeatable."),
    ):
        function = option(function)
    return function


def cluster_options(function: F) -> F:
    """:func:`common_options` with ``-t`` and ``-m``."""
    for option in (
        click.option("-m", "--jobmanager", metavar="HOST:PORT", help="Address of the JobManager."),
        click.option("-t", "--target", metavar="TARGET", help="local or remote (option execution.target)."),
    ):
        function = option(function)
    return common_options(function)


def load_configuration(conf_dir: Path | None, dynamic: Sequence[str]) -> Configuration:
    """File, environment and ``-D``, the last one strongest; with the directory's ``log.yaml``.

    Raises
    ------
    ConfigError
        As :meth:`yarnflow.config.configuration.Configuration.load`.
    """
    from yarnflow.config.configuration import Configuration
    from yarnflow.config.log_file import LOG_FILE_NAME
    from yarnflow.config.options import cluster

    if conf_dir is None and os.environ.get(CONF_DIR_VARIABLE):
        conf_dir = Path(os.environ[CONF_DIR_VARIABLE])
    configuration = Configuration.load(conf_dir, os.environ, dynamic)
    if conf_dir is None or configuration.is_set(cluster.LOG_CONFIG_FILE):
        return configuration
    log_file = conf_dir.absolute() / LOG_FILE_NAME
    if not log_file.exists():
        return configuration
    return configuration.with_values({cluster.LOG_CONFIG_FILE.key: str(log_file)}, source=str(conf_dir))


def with_target(configuration: Configuration, target: str | None, jobmanager: str | None) -> Configuration:
    """Apply ``-t`` and ``-m``; an address without a target means the remote one."""
    from yarnflow.config.options import client, cluster

    values: dict[str, str] = {}
    if jobmanager:
        host, colon, port = jobmanager.rpartition(":")
        if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise InvalidOption(f"-m {jobmanager}: expected host:port")
        values = {cluster.JOBMANAGER_RPC_ADDRESS.key: host, cluster.JOBMANAGER_RPC_PORT.key: port}
        values[client.TARGET.key] = "remote"
    if target:
        values[client.TARGET.key] = target
    return configuration.with_values(values, source="command line") if values else configuration


@contextmanager
def existing_cluster(configuration: Configuration) -> Iterator[ClusterConnection]:
    """Connect to a cluster that runs already, for verbs about its jobs."""
    from yarnflow.client.targets import find_target
    from yarnflow.config.options import client

    name = configuration.get(client.TARGET) if configuration.is_set(client.TARGET) else "remote"
    target = find_target(name)
    if target.owned:
        raise InvalidOption(
            f"a {name} cluster lives only as long as its submit command; name a running one with -m host:port"
        )
    connection = target.connect(configuration)
    try:
        yield connection
    finally:
        connection.stop(forced=False, failed=False)


def terminate_as_interrupt() -> None:
    """From now on SIGTERM raises :class:`Terminated` in the main thread."""

    def on_term(number: int, frame: FrameType | None) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, on_term)


def exit_on_signal(status: int) -> None:
    """From now on TERM and INT end the process at once; the kernel ends its children."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        os._exit(status)

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
