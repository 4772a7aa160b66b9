"""``yarnflow logs JOB|APPLICATION``: log files of containers, while they run and after the end."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import click

from yarnflow.cli.common import common_options
from yarnflow.cli.output import Shown, Verb, wants_json
from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import is_job_id
from yarnflow.errors import JobNotFound, YarnUnavailable

if TYPE_CHECKING:
    from yarnflow.client.diagnose.logs import LogPart


@dataclass(frozen=True, slots=True)
class LogText:
    """What one file says."""

    container_id: str
    file: str
    #: where it was read; empty = on HDFS
    node: str
    text: str


@dataclass(frozen=True, slots=True)
class Logs:
    """Files in the order in which they were read."""

    logs: tuple[LogText, ...]


@click.command("logs", cls=Verb, answer=Logs)
@click.argument("name", metavar="JOB|APPLICATION")
@click.option(
    "--container",
    default="",
    metavar="WHICH",
    help="master, driver, taskmanager (all of that kind), or a container's id or last number; default: all.",
)
@click.option("-f", "--follow", is_flag=True, help="Go on until the application has ended.")
@click.option(
    "-n", "--lines", type=click.IntRange(min=0), metavar="N", help="Only the last lines of each file."
)
@common_options
def command(
    name: str,
    container: str,
    follow: bool,
    lines: int | None,
    configuration: Configuration,
) -> Shown:
    """Show the logs of a job or application on YARN.

    Those of other clusters are files on their machines, in yarnflow.log.dir or the cluster's directory.
    A job's are those of all masters of its cluster; with --follow only of one that lives.
    While it runs they are read from its nodes, after its end from HDFS, where YARN collects
    them if log aggregation is on.
    """
    from yarnflow.client.diagnose.logs import ApplicationLogs, check_selection, known_application, read_logs
    from yarnflow.client.yarn.applications import masters_of
    from yarnflow.client.yarn.services import yarn_services

    if follow and wants_json():
        raise click.UsageError("--json prints one document, and --follow has no end; use one of them")
    check_selection(container)
    try:
        services = yarn_services(configuration, os.environ)
    except YarnUnavailable as error:
        if not is_job_id(name):
            raise
        raise YarnUnavailable(f"{_elsewhere(configuration)}; for a job on YARN, {error}") from error
    try:
        note = partial(click.echo, err=True)
        try:
            application = known_application(services, name)
        except JobNotFound as error:
            raise JobNotFound(f"{error}; {_elsewhere(configuration)}") from error
        if follow:
            parts = ApplicationLogs(services, application, container, lines, note).follow()
        else:
            named = application.application_id == name
            applications = [application] if named else masters_of(services, application)
            if container.startswith("container_"):
                # container_<cluster>_<application>_…, perhaps with an epoch before
                applications = [
                    one for one in applications if one.application_id[len("application") :] + "_" in container
                ] or [application]
            parts = read_logs(services, applications, container, lines, note)
        if wants_json():
            return Shown(Logs(tuple(_texts(parts))))
        before = ("", "")
        for part in parts:
            if (part.container_id, part.file) != before:
                where = f" on {part.node}" if part.node else ""
                click.echo(f"==> {part.container_id} {part.file}{where} <==")
                before = (part.container_id, part.file)
            click.echo(part.text, nl=not part.text.endswith("\n"))
        return Shown(None)
    finally:
        services.close()


def _texts(parts: Iterable[LogPart]) -> list[LogText]:
    """One for each file: a long one comes in several parts."""
    texts: dict[tuple[str, str], LogText] = {}
    for part in parts:
        key = (part.container_id, part.file)
        before = texts[key].text if key in texts else ""
        texts[key] = LogText(part.container_id, part.file, part.node, before + part.text)
    return list(texts.values())


def _elsewhere(configuration: Configuration) -> str:
    """Where the logs of a job are that does not run on YARN."""
    from yarnflow.config.options import cluster
    from yarnflow.process.dirs import base_directory, temporary_directory

    where = configuration.get(cluster.LOG_DIR)
    if not where:
        where = f"{base_directory(temporary_directory(configuration))}/*/logs"
    return f"the logs of a local or standalone cluster are files on its machines, here in {where}"
