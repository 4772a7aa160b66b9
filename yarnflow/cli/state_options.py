"""What verbs about state share: paths as typed, and the file systems they are on."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from yarnflow.config.options import client, yarn
from yarnflow.fs.saved_state import state_uri

if TYPE_CHECKING:
    from yarnflow.config.configuration import Configuration
    from yarnflow.core.files import FileSystem, FileSystems
    from yarnflow.core.ids import JobId

_HADOOP_VARIABLES: Final = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


def open_file_systems() -> FileSystems:
    """The file systems of URIs, with the errors of missing libraries made readable."""
    from yarnflow.client.yarn.services import libraries
    from yarnflow.fs.file_systems import file_systems

    opened = file_systems()

    def fs_of(uri: str) -> tuple[FileSystem, str]:
        with libraries():
            return opened(uri)

    return fs_of


def absolute_state(
    text: str, configuration: Configuration, file_systems: FileSystems, *, default_target: str = "remote"
) -> str:
    """A path of state as the user typed it, as a URI.

    Without a scheme it is a path of the cluster's default file system for targets on YARN, else of
    this machine.

    Parameters
    ----------
    default_target : str
        Where the verb goes when no target is named; empty = nowhere: a machine with a Hadoop
        configuration means Hadoop's file system then.
    """
    from yarnflow.config.hadoop.conf import HadoopConf

    name = configuration.get(client.TARGET) if configuration.is_set(client.TARGET) else default_target
    if not configuration.is_set(client.TARGET) and configuration.is_set(yarn.APPLICATION_ID):
        name = "yarn-session"
    on_hadoop = name.startswith("yarn-") if name else any(map(os.environ.get, _HADOOP_VARIABLES))

    def home() -> str:
        return file_systems(HadoopConf.load(os.environ).default_fs)[0].home()

    return state_uri(text, os.environ, on_hadoop=on_hadoop, home=home)


@contextmanager
def interruptible(job_id: JobId) -> Iterator[None]:
    """Tell a user who does not wait any longer that what he asked for goes on."""
    try:
        yield
    except KeyboardInterrupt:
        note(f"It goes on; see how far it is with: yarnflow checkpoints {job_id}")
        raise


def note(text: str) -> None:
    """A sentence for the user; standard output is for paths."""
    click.echo(text, err=True)


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
