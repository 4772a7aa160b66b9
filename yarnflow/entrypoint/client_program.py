"""A user's program beside a JobManager: what ``yarnflow submit`` is told that runs it.

It runs in a process of its own with that JobManager as target, so main() does there exactly what it does on
a client, and cannot harm the JobManager.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from yarnflow.config.conf_file import CONF_FILE_NAME
from yarnflow.config.configuration import Configuration
from yarnflow.config.options import client, cluster, ha
from yarnflow.process.commands import module_command


def options_of_client(configuration: Configuration, address: str, *, attached: bool) -> Configuration:
    """The options of the program's client.

    Parameters
    ----------
    configuration : Configuration
        The JobManager's, which has the cluster's secret.
    address : str
        Where the JobManager serves, ``host:port``.
    attached : bool
        It waits for its jobs.
    """
    host, _, port = address.rpartition(":")
    return configuration.with_values(
        {
            client.TARGET.key: "remote",
            client.ATTACHED.key: str(attached).lower(),
            cluster.JOBMANAGER_RPC_ADDRESS.key: host,
            cluster.JOBMANAGER_RPC_PORT.key: port,
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


def client_command(verb: str, options: Path, *arguments: str) -> tuple[str, ...]:
    """``yarnflow VERB`` with a directory from :func:`write_options`."""
    return module_command("yarnflow.cli", verb, "--conf-dir", str(options), *arguments)
