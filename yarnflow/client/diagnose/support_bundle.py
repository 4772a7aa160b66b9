"""Everything about an application that helps to understand it, in one file without secrets.

Decides what goes in and what is masked: the secret of the application wherever it stands, values
of options that are secret and what looks like one in logs.  User data, the program and Hadoop's
own files stay out.  A part that cannot be had is replaced by the reason.
"""

from __future__ import annotations

import io
import json
import os
import platform
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from enum import Enum
from importlib import metadata
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, Final

from yarnflow import __version__
from yarnflow.client.diagnose.checks import run_checks
from yarnflow.client.diagnose.doctor import checks_for
from yarnflow.client.diagnose.logs import ApplicationLogs
from yarnflow.client.environment.check import REQUIRED
from yarnflow.client.targets import YARN_PER_JOB
from yarnflow.client.yarn.applications import connect_application, deployment_id_of, masters_of
from yarnflow.client.yarn.services import YarnServices
from yarnflow.config.configuration import Configuration
from yarnflow.config.secrets import HIDDEN, masked, masked_text
from yarnflow.core.yarn import Application
from yarnflow.errors import ConfigError, FileMissing, YarnflowError
from yarnflow.staging.deployment import ApplicationDirectory

#: of each log file, from its end
LOG_LINES: Final = 20_000
_README: Final = """\
{name}, collected {when}

application.json      what YARN says of the application
containers.json       its containers now, while it runs
queue.json            its queue and the cluster
jobs.json             its jobs in detail, from its JobManager or, right after its end, from what it left
configuration.json    options of the application; values of secret ones are masked
logs/                 log files by container, the last {lines} lines of each, of all of its cluster's masters
doctor.txt            yarnflow doctor, without a container
versions.txt          of what the client runs on

Secrets are masked. Read it through before you give it away: log lines may have data of yours.
"""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that was written."""

    path: Path
    #: parts that could not be had → why
    missing: dict[str, str]


def write_bundle(
    services: YarnServices,
    application: Application,
    path: Path,
    environ: Mapping[str, str],
    note: Callable[[str], None] = lambda text: None,
) -> Bundle:
    """Collect everything about one application in a ``.tar.gz``.

    Raises
    ------
    ConfigError
        The file cannot be written.
    """
    missing: dict[str, str] = {}
    secrets = _secrets(services, application)
    name = path.name.removesuffix(".tar.gz")
    now_s = int(time.time())
    try:
        with _private_file(path) as stream, tarfile.open(fileobj=stream, mode="w:gz") as tar:

            def add(entry: str, value: object) -> None:
                content = _content(value, secrets).encode("utf-8", "replace")
                info = tarfile.TarInfo(f"{name}/{entry}")
                info.size, info.mode, info.mtime = len(content), 0o600, now_s
                tar.addfile(info, io.BytesIO(content))

            when = time.strftime("%d.%m.%Y %H:%M:%S", time.localtime(now_s))
            add("README", _README.format(name=application.application_id, when=when, lines=LOG_LINES))
            for entry, make in _parts(services, application, environ).items():
                note(entry)
                try:
                    add(entry, make())
                except YarnflowError as error:
                    missing[entry] = " ".join(str(error).split())
            note("logs")
            for master in masters_of(services, application):
                try:
                    for entry, text in _logs(services, master, missing):
                        add(entry, text)
                except YarnflowError as error:
                    of_other = f" of {master.application_id}" if master is not application else ""
                    missing[f"logs{of_other}"] = " ".join(str(error).split())
            if missing:
                add("missing.txt", "".join(f"{entry}: {reason}\n" for entry, reason in missing.items()))
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
    return Bundle(path, missing)


def _private_file(path: Path) -> BinaryIO:
    """A new file, or what was there emptied, that nobody else can read from the first byte on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "wb")


def _secrets(services: YarnServices, application: Application) -> frozenset[str]:
    try:
        directory = ApplicationDirectory(services.fs, services.layout, deployment_id_of(application))
        secret = directory.read_secret()
    except YarnflowError:
        return frozenset()  # gone with the application
    return frozenset({secret} if secret else ())


def _parts(
    services: YarnServices, application: Application, environ: Mapping[str, str]
) -> dict[str, Callable[[], object]]:
    return {
        "application.json": lambda: application,
        "containers.json": lambda: services.cluster.containers(application.application_id),
        "queue.json": lambda: [_queue(services, application), services.cluster.limits()],
        "jobs.json": lambda: _jobs(services, application),
        "configuration.json": lambda: _configuration(services, application),
        "doctor.txt": lambda: _doctor(services, environ),
        "versions.txt": _versions,
    }


def _queue(services: YarnServices, application: Application) -> object:
    queues = services.cluster.queues()
    return next((queue for queue in queues if application.queue in (queue.name, queue.path)), None)


def _jobs(services: YarnServices, application: Application) -> object:
    directory = ApplicationDirectory(services.fs, services.layout, deployment_id_of(application))
    if application.state.ended:
        result = directory.read_result()
        if result is None:
            raise FileMissing("its directory on HDFS went with it; application.json has YARN's diagnostics")
        return result
    cluster = connect_application(services, application)
    try:
        gateway = cluster.gateway()
        return [gateway.job_details(job.job_id) for job in gateway.list_jobs()]
    finally:
        cluster.close()


def _configuration(services: YarnServices, application: Application) -> object:
    directory = ApplicationDirectory(services.fs, services.layout, deployment_id_of(application))
    content: dict[str, Any] = {"client": services.configuration.masked()}
    try:
        deployment = directory.read_deployment()
        values = Configuration.from_dict(deployment.configuration, "deployment").masked()
        content["application"] = values
        content["deployment"] = {
            **asdict(deployment),
            "configuration": "see application",
            # passwords among the program's arguments do not look like any
            "program_argv": [HIDDEN for _ in deployment.program_argv],
        }
    except YarnflowError as error:
        content["application"] = f"not known any more: {error}"
    return content


def _doctor(services: YarnServices, environ: Mapping[str, str]) -> str:
    checks, close = checks_for(YARN_PER_JOB, services.configuration, environ, container=False)
    try:
        return "".join(
            f"{'ok' if finding.ok else 'FAILED':<8}{finding.name}: {finding.text}\n"
            for finding in run_checks(checks)
        )
    finally:
        close()


def _versions() -> str:
    lines = [f"yarnflow {__version__}", f"Python {platform.python_version()}", platform.platform()]
    for name in REQUIRED:
        try:
            lines.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            lines.append(f"{name} is not installed")
    return "\n".join(lines) + "\n"


def _logs(
    services: YarnServices, application: Application, missing: dict[str, str]
) -> Iterator[tuple[str, str]]:
    def note(text: str) -> None:
        missing[f"logs ({len(missing)})"] = text

    parts = ApplicationLogs(services, application, lines=LOG_LINES, note=note).read()
    written: Counter[str] = Counter()
    # those of an ended application come line by line
    for (container_id, file), of_file in groupby(parts, key=lambda part: (part.container_id, part.file)):
        entry = f"logs/{container_id}/{file}"
        written[entry] += 1
        texts: list[str] = []
        failure: YarnflowError | None = None
        try:
            for part in of_file:
                texts.append(part.text)
        except YarnflowError as error:
            failure = error
        # YARN may have collected one file in several pieces; members of one name would hide each other
        yield entry if written[entry] == 1 else f"{entry}.{written[entry]}", "".join(texts)
        if failure is not None:
            raise failure


def _content(value: object, secrets: frozenset[str]) -> str:
    """A text, or a document as JSON, without secrets: in JSON's own notation they are hard to tell."""
    if isinstance(value, str):
        return masked_text(value, secrets)
    return json.dumps(masked(_plain(value), secrets), indent=1, ensure_ascii=False) + "\n"


def _plain(node: Any) -> Any:
    if is_dataclass(node) and not isinstance(node, type):
        return _plain(asdict(node))
    if isinstance(node, dict):
        return {str(key): _plain(value) for key, value in node.items()}
    if isinstance(node, (list, tuple, set, frozenset)):
        return [_plain(value) for value in node]
    if isinstance(node, Enum):
        return node.value
    return node if isinstance(node, (str, int, float, bool, type(None))) else str(node)
