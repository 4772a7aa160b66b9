"""``yarnflow env``: Python environments for containers: pack, check, and the cache on HDFS."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import click

from yarnflow.cli.common import common_options
from yarnflow.cli.output import CONTEXT, Shown, Verb, said
from yarnflow.errors import EnvironmentUnusable, InvalidOption

if TYPE_CHECKING:
    from yarnflow.client.yarn.services import YarnServices
    from yarnflow.config.configuration import Configuration

_DAY_MS: Final = 24 * 60 * 60 * 1000
_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class PackedEnvironment:
    """An archive of an environment."""

    #: value of ``python.environment``: a path, or a URI if it was uploaded
    environment: str
    size_bytes: int
    #: else it was up to date
    rebuilt: bool
    python_version: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check has found."""

    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class CheckedEnvironment:
    """All checks of an archive or directory."""

    path: str
    checks: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class CachedFile:
    """A file in the cache on HDFS."""

    uri: str
    size_bytes: int
    uploaded_ms: int
    #: why it stays; empty = it goes, or nobody was to delete any
    kept_because: str = ""


@dataclass(frozen=True, slots=True)
class Cache:
    """The cache, or what was deleted of it."""

    #: its directory
    uri: str
    files: tuple[CachedFile, ...]


@click.group("env", context_settings=CONTEXT)
def command() -> None:
    """Python environments for containers."""


@command.command("pack", cls=Verb, answer=PackedEnvironment)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="The archive, .tar.gz.")
@click.option(
    "--environment",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The environment; default: the one yarnflow runs in.",
)
@click.option("--to", "destination", metavar="hdfs:[PATH]", help="Upload it; without PATH into the cache.")
@click.option("--python-prefix", default="", metavar="DIR", help="Where the base Python is on the nodes.")
@click.option("--force", is_flag=True, help="Make it again, even if nothing has changed.")
@common_options
def pack(
    output: Path | None,
    environment: Path | None,
    destination: str | None,
    python_prefix: str,
    force: bool,
    configuration: Configuration,
) -> Shown:
    """Make an archive of an environment, for the option python.environment.

    Nothing is done when the archive is there and the environment has not changed since.
    """
    from yarnflow.client.environment.pack import default_output, pack_environment

    if destination is not None:
        hdfs_path(destination)  # a mistake is told before minutes of work
    prefix = environment or Path(sys.prefix)
    started = time.monotonic()
    packed = pack_environment(
        prefix,
        output or default_output(prefix),
        python_prefix=python_prefix,
        force=force,
        note=lambda text: click.echo(text, err=True),
    )
    size = f"{packed.size_bytes / _MIB:.0f} MiB"
    if packed.rebuilt:
        click.echo(f"{packed.path} made: {size} in {time.monotonic() - started:.0f} s", err=True)
    else:
        click.echo(f"{packed.path} is up to date: {size}", err=True)
    if packed.left_out:
        click.echo("left out: yarnflow itself, which each submit brings along", err=True)
    if packed.description.interpreter:
        click.echo(
            f"note: Python {packed.description.python_version} itself is not in it: every node needs it as "
            f"{packed.description.interpreter} (another place: --python-prefix)",
            err=True,
        )
    if packed.description.uses_system_packages:
        click.echo("note: packages of the system, which the environment sees, are not in it", err=True)
    place = str(packed.path.absolute())
    if destination is not None:
        from yarnflow.client.yarn.services import yarn_services

        place = upload(yarn_services(configuration, os.environ), packed.path, destination)
    found = PackedEnvironment(place, packed.size_bytes, packed.rebuilt, packed.description.python_version)
    return Shown(found, f"-Dpython.environment={place}")


@command.command("check", cls=Verb, answer=CheckedEnvironment)
@click.argument("path", metavar="FILE|DIR", type=click.Path(path_type=Path))
@click.option("--verbose", is_flag=True, help="Show the traceback of an error.")
def check(path: Path, verbose: bool) -> Shown:
    """Check an archive or a directory for what containers need."""
    from yarnflow.client.environment.check import describe, examine

    findings = tuple(Finding(finding.ok, finding.text) for finding in examine(describe(path)))
    wrong = sum(not finding.ok for finding in findings)
    error = None
    if wrong:
        error = EnvironmentUnusable(
            f"{path}: {wrong} of {len(findings)} checks failed; the lines above say what to do"
        )
    lines = (f"{'ok' if finding.ok else 'FAILED':<8}{finding.text}" for finding in findings)
    return Shown(CheckedEnvironment(str(path), findings), "\n".join(lines), error=error)


@command.command("list", cls=Verb, answer=Cache)
@common_options
def list_cache(configuration: Configuration) -> Shown:
    """List what submits have uploaded into the cache on HDFS."""
    from yarnflow.client.environment.cache import cache_entries
    from yarnflow.client.yarn.services import yarn_services

    services = yarn_services(configuration, os.environ)
    entries = cache_entries(services.fs, services.layout)
    lines = []
    for entry in entries:
        uploaded = datetime.fromtimestamp(entry.uploaded_ms / 1000).strftime("%d.%m.%Y %H:%M")
        lines.append(f"{uploaded} {entry.size_bytes / _MIB:>9.1f} MiB  {entry.uri}")
    total = sum(entry.size_bytes for entry in entries) / _MIB
    where = f"{services.fs.uri}{services.layout.cache}"
    click.echo(f"{len(entries)} files, {total:.1f} MiB in {where}", err=True)
    files = tuple(CachedFile(entry.uri, entry.size_bytes, entry.uploaded_ms) for entry in entries)
    return Shown(Cache(where, files), "\n".join(lines))


@command.command("clean", cls=Verb, answer=Cache)
@click.option("--older-than", type=click.IntRange(min=0), default=30, metavar="DAYS", help="Default: 30.")
@click.option("--dry-run", is_flag=True, help="Say what would be deleted.")
@common_options
def clean(older_than: int, dry_run: bool, configuration: Configuration) -> Shown:
    """Delete from the cache on HDFS what is old and needed by no application."""
    from yarnflow.client.environment.cache import clean_cache
    from yarnflow.client.yarn.services import yarn_services
    from yarnflow.process.clock import SystemClock

    services = yarn_services(configuration, os.environ)
    decisions = clean_cache(
        services.fs,
        services.layout,
        services.cluster,
        services.user,
        older_than_ms=older_than * _DAY_MS,
        now_ms=SystemClock().now_ms(),
        dry_run=dry_run,
    )
    freed = 0
    for decision in decisions:
        if decision.kept_because:
            said(f"kept ({decision.kept_because}): {decision.entry.uri}")
        else:
            said(f"{'would be deleted' if dry_run else 'deleted'}: {decision.entry.uri}")
            freed += decision.entry.size_bytes
    click.echo(f"{freed / _MIB:.1f} MiB {'would be freed' if dry_run else 'freed'}", err=True)
    files = tuple(
        CachedFile(one.entry.uri, one.entry.size_bytes, one.entry.uploaded_ms, one.kept_because)
        for one in decisions
    )
    return Shown(Cache(f"{services.fs.uri}{services.layout.cache}", files))


def hdfs_path(destination: str, own_uri: str = "") -> str:
    """The path of ``--to``; empty for the cache.

    Parameters
    ----------
    own_uri : str
        The configured file system, once it is known; no other can be written to.

    Raises
    ------
    InvalidOption
        Not ``hdfs:``, ``hdfs:/path`` or ``hdfs://host:port/path``.
    """
    parts = urlsplit(destination)
    if parts.scheme != "hdfs" or (parts.path and not parts.path.startswith("/")):
        raise InvalidOption(f"--to {destination}: expected hdfs:/path, or hdfs: for the cache of submits")
    if own_uri and parts.netloc and parts.netloc != urlsplit(own_uri).netloc:
        raise InvalidOption(f"--to {destination}: only {own_uri} can be written to; leave the host out")
    return parts.path.rstrip("/")


def upload(services: YarnServices, archive: Path, destination: str) -> str:
    """Upload an archive to where ``--to`` says; returns its URI."""
    from yarnflow.staging.cache import ContentCache
    from yarnflow.staging.layout import prepare

    fs = services.fs
    path = hdfs_path(destination, fs.uri)
    if not path:
        prepare(fs, services.layout, services.user)
        cached = ContentCache(fs, services.layout).put(archive, archive.name, archive=True)
        return cached.resource.source
    status = fs.status(path)
    if status is not None and status.is_directory:
        path = f"{path}/{archive.name}"
    fs.upload(str(archive), path, permission=0o644)
    return fs.uri + path
