"""What several verbs share: options, the configuration they make, signals."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import click

from yarnflow.cli.completion_values import job_ids, option_keys, target_names
from yarnflow.cli.configuration import CONF_DIR_VARIABLE, load_configuration
from yarnflow.cli.output import remember
from yarnflow.core.ids import JobId, is_job_id
from yarnflow.errors import InvalidOption, JobNotFound

if TYPE_CHECKING:
    # `yarnflow --help` and `version` read no configuration and pay for none of it
    from yarnflow.client.cluster import ClusterConnection
    from yarnflow.config.configuration import Configuration
    from yarnflow.core.yarn import DeploymentMode

F = TypeVar("F", bound=Callable[..., Any])

#: of cleaning up on YARN and HDFS before a second interrupt ends it
CLEAN_UP_S: Final = 3.0
#: how ``flink run -m`` asked for a cluster of its own on YARN
YARN_CLUSTER: Final = "yarn-cluster"


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, which end a command in the same good order as an interrupt does."""


def common_options(function: F) -> F:
    """``-D``, ``--conf-dir`` and ``--verbose``; the function gets their ``configuration``."""
    return _options(function, _COMMON, _COMMON_NAMES)


def cluster_options(function: F) -> F:
    """:func:`common_options` with those that name a cluster, Flink's older ones included."""
    return _options(function, (*_COMMON, *_CLUSTER), (*_COMMON_NAMES, *_CLUSTER_NAMES))


def _options(function: F, options: Sequence[Callable[[F], F]], names: Sequence[str]) -> F:
    @wraps(function)
    def configured(*arguments: Any, **values: Any) -> Any:
        typed = {name: values.pop(name) for name in names}
        return function(*arguments, configuration=_configuration(**typed), **values)

    made = cast(F, configured)
    for option in options:
        made = option(made)
    return made


def _configuration(
    conf_dir: Path | None,
    dynamic: tuple[str, ...],
    yarn_dynamic: tuple[str, ...] = (),
    target: str | None = None,
    jobmanager: str | None = None,
    executor: str | None = None,
    namespace: str | None = None,
    application: str | None = None,
) -> Configuration:
    from yarnflow.config.options import cluster, yarn

    configuration = load_configuration(conf_dir, (*dynamic, *yarn_dynamic))
    configuration = with_target(configuration, target or executor, jobmanager)
    values = {cluster.CLUSTER_ID.key: namespace, yarn.APPLICATION_ID.key: application}
    typed = {key: value for key, value in values.items() if value is not None}
    if typed:
        configuration = configuration.with_values(typed, source="command line")
    for line in configuration.notes:
        click.echo(f"warning: {line}", err=True)
    return configuration


_COMMON: Final[tuple[Callable[[Any], Any], ...]] = (
    click.option(
        "--verbose", is_flag=True, expose_value=False, callback=remember, help="Show tracebacks and times."
    ),
    click.option(
        "--conf-dir",
        type=click.Path(path_type=Path),
        help=f"Directory of yarnflow-conf.yaml and log.yaml; default: {CONF_DIR_VARIABLE}.",
    ),
    click.option(
        "-D",
        "dynamic",
        multiple=True,
        metavar="KEY=VALUE",
        help="Set an option.  Repeatable.",
        shell_complete=option_keys,
    ),
)
#: the hidden ones are habits of Flink's users
_CLUSTER: Final[tuple[Callable[[Any], Any], ...]] = (
    click.option("-yD", "yarn_dynamic", multiple=True, hidden=True, help="as -D"),
    click.option("-yid", "--yarnapplicationId", "application", hidden=True, help="yarn.application.id"),
    click.option(
        "-z",
        "-yz",
        "--zookeeperNamespace",
        "--yarnzookeeperNamespace",
        "namespace",
        hidden=True,
        help="high-availability.cluster-id",
    ),
    click.option("-e", "--executor", "executor", hidden=True, help="as -t"),
    click.option(
        "-m",
        "--jobmanager",
        metavar="HOST:PORT",
        help="Address of the JobManager; of several masters some, with commas between them.",
    ),
    click.option(
        "-t",
        "--target",
        metavar="TARGET",
        help="local, remote, yarn-per-job, yarn-application or yarn-session (execution.target).",
        shell_complete=target_names,
    ),
)
#: what a user types for one command, in whatever form
TYPED: Final = ("-D", "command line")
_COMMON_NAMES: Final = ("conf_dir", "dynamic")
_CLUSTER_NAMES: Final = ("yarn_dynamic", "target", "jobmanager", "executor", "namespace", "application")


def job_argument(*, required: bool = True) -> Callable[[F], F]:
    """JOB; completed with the jobs there are."""
    return click.argument("job", required=required, shell_complete=job_ids)


def checked_job_id(text: str) -> JobId:
    """A job id as typed.  Raises JobNotFound for anything else."""
    if not is_job_id(text):
        raise JobNotFound(
            f"{text!r} is not a job id (32 hexadecimal digits); `yarnflow list --all` shows them"
        )
    return JobId(text)


def with_target(configuration: Configuration, target: str | None, jobmanager: str | None) -> Configuration:
    """Apply ``-t`` and ``-m``; an address without a target means the remote one."""
    from yarnflow.config.options import client

    values: dict[str, str] = {}
    if jobmanager == YARN_CLUSTER:
        values[client.TARGET.key] = "yarn-per-job"
    elif jobmanager:
        values = _masters(jobmanager)
        values[client.TARGET.key] = "remote"
    if target:
        values[client.TARGET.key] = target
    return configuration.with_values(values, source="command line") if values else configuration


def _masters(text: str) -> dict[str, str]:
    """Options that name one master, or several of a cluster."""
    from yarnflow.config.options import cluster

    hosts = []
    for name in text.split(","):
        host, colon, port = name.strip().rpartition(":")
        if not colon or not host or not port.isdigit():
            raise InvalidOption(f"-m {text}: expected host:port, or several with commas between them")
        if not 0 < int(port) < 65536:
            raise InvalidOption(f"-m {text}: {port} is no port; expected a whole number from 1 to 65535")
        hosts.append((host, port))
    if len(hosts) == 1:
        ((host, port),) = hosts
        return {cluster.JOBMANAGER_RPC_ADDRESS.key: host, cluster.JOBMANAGER_RPC_PORT.key: port}
    return {cluster.JOBMANAGER_RPC_ADDRESS.key: ",".join(f"{host}:{port}" for host, port in hosts)}


@contextmanager
def existing_cluster(configuration: Configuration, job_id: str = "") -> Iterator[ClusterConnection]:
    """Connect to a cluster that runs already, for verbs about its jobs.

    Parameters
    ----------
    job_id : str
        The job the verb is about; where nobody typed which cluster is meant, it is found by it.
    """
    from yarnflow.client.discovery.clusters import Clusters
    from yarnflow.client.local import cluster_with

    clusters = Clusters(configuration)
    connection: ClusterConnection | None = None
    mode = named_mode(configuration)
    if job_id and mode is not None:
        connection = clusters.with_job_on_yarn(JobId(job_id), mode)
    elif job_id and not names_cluster(configuration):
        connection = clusters.with_job(JobId(job_id))
    if connection is None:
        connection = cluster_with(_running_clusters(configuration, job_id), job_id)
    try:
        yield connection
    finally:
        connection.stop(forced=False, failed=False)


@contextmanager
def existing_clusters(configuration: Configuration) -> Iterator[Sequence[ClusterConnection]]:
    """All clusters that the options name, for verbs about whatever jobs there are; at least one."""
    connections = _running_clusters(configuration, "")
    try:
        yield connections
    finally:
        for connection in connections:
            connection.stop(forced=False, failed=False)


def names_cluster(configuration: Configuration) -> bool:
    """Whether somebody typed which cluster is meant; a file or the environment gives no more than a hint."""
    from yarnflow.client.targets import WHERE_STANDALONE
    from yarnflow.config.options import client, yarn

    naming = (client.TARGET, yarn.APPLICATION_ID, *WHERE_STANDALONE)
    return any(configuration.source_of(option) in TYPED for option in naming)


def named_mode(configuration: Configuration) -> DeploymentMode | None:
    """The target on YARN that somebody typed without saying which application; None = not so."""
    from yarnflow.cli.targets import find_target
    from yarnflow.config.options import client, yarn

    if configuration.source_of(client.TARGET) not in TYPED or configuration.is_set(yarn.APPLICATION_ID):
        return None
    return find_target(configuration.get(client.TARGET)).mode


def _running_clusters(configuration: Configuration, job_id: str) -> list[ClusterConnection]:
    from yarnflow.cli.targets import LOCAL, find_target
    from yarnflow.client.local import clusters_here, local_clusters
    from yarnflow.client.targets import REMOTE, names_standalone
    from yarnflow.config.options import client, yarn

    if configuration.is_set(client.TARGET):
        target = find_target(configuration.get(client.TARGET))
        if target is LOCAL:
            return local_clusters(configuration, job_id)
    elif configuration.is_set(yarn.APPLICATION_ID):
        target = find_target("yarn-session")
    elif names_standalone(configuration):
        target = REMOTE
    else:
        return clusters_here(configuration, lambda: REMOTE.reach(configuration))
    return [target.reach(configuration, job_id)]


def terminate_as_interrupt() -> None:
    """From now on SIGTERM raises :class:`Terminated` in the main thread, and SIGHUP outside ``nohup``."""

    def on_term(number: int, frame: FrameType | None) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, on_term)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, on_term)


def exit_on_signal(status: int, patience_s: float = 0.0) -> None:
    """From now on TERM, HUP and INT end the process at once; the kernel ends its children.

    Parameters
    ----------
    patience_s : float
        Not in the first seconds: one interrupt may arrive as several signals, and what is left on
        YARN and HDFS would stay there.
    """
    since_s = time.monotonic()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if time.monotonic() - since_s >= patience_s:
            os._exit(status)

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, on_signal)
