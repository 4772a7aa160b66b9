"""Logging of one process: lines as Flink writes them, to a file; the terminal stays quiet.

The set-up is that of :mod:`yarnflow.config.log_file`.  Whoever starts a cluster keeps a copy of the
``log.yaml`` he was given in the cluster's directory and names it in the options of the processes,
so that all of them, and those that are started later, log by the same file.
"""

from __future__ import annotations

import logging
import logging.config
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.log_file import DEFAULT_LOGGING, LOG_FILE_VARIABLE, read_log_file
from yarnflow.config.options import cluster
from yarnflow.errors import ConfigError, InvalidOption

#: environment variable by which a supervisor names its child's log file
LOG_FILE_ENVIRONMENT: Final = "YARNFLOW_LOG_FILE"


class FlinkFormatter(logging.Formatter):
    """``2026-11-20 21:15:28,123 INFO  yarnflow.runtime.dispatcher.dispatcher [] - message``."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-5s %(name)-40s [] - %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """The line; Python's WARNING and CRITICAL are Log4j's WARN and FATAL."""
        name = record.levelname
        record.levelname = {"WARNING": "WARN", "CRITICAL": "FATAL"}.get(name, name)
        try:
            return super().format(record)
        finally:
            record.levelname = name


def log_settings(configuration: Configuration) -> dict[str, Any] | None:
    """Content of the ``log.yaml`` that the options name; None = ours.

    Raises
    ------
    ConfigError
        It cannot be used; the message has file and line.
    """
    name = configuration.get(cluster.LOG_CONFIG_FILE)
    return read_log_file(Path(name).expanduser()) if name else None


def keep_log_file(configuration: Configuration, copy: Path) -> dict[str, str]:
    """Copy the ``log.yaml`` that the options name, for the processes of a cluster.

    Parameters
    ----------
    copy : Path
        Where it goes; not written when the options name none.

    Returns
    -------
    dict
        Options by which the processes find the copy.

    Raises
    ------
    ConfigError
        It cannot be used; the message has file and line.
    """
    if log_settings(configuration) is None:
        return {}
    try:
        copy.write_bytes(Path(configuration.get(cluster.LOG_CONFIG_FILE)).expanduser().read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot write {copy}: {error.strerror}") from error
    return {cluster.LOG_CONFIG_FILE.key: str(copy)}


def set_up_logging(log_file: Path | None, settings: Mapping[str, Any] | None = None) -> None:
    """Set up logging of this process.

    Parameters
    ----------
    log_file : Path or None
        Where lines go; None = the file ``YARNFLOW_LOG_FILE`` names, else standard error with
        warnings only (clients).
    settings : mapping, optional
        Content of ``log.yaml``, from :func:`log_settings`; default: ours.

    Raises
    ------
    InvalidOption
        The settings are not a valid logging configuration.
    """
    if log_file is None and os.environ.get(LOG_FILE_ENVIRONMENT):
        log_file = Path(os.environ[LOG_FILE_ENVIRONMENT])
    if log_file is None:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(FlinkFormatter())
        logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
        return
    log_file.parent.mkdir(parents=True, exist_ok=True)
    # modules are imported before: unless a log.yaml asks for it, their loggers must not fall silent
    chosen = {"disable_existing_loggers": False, **(settings or DEFAULT_LOGGING)}
    try:
        logging.config.dictConfig(_substitute(chosen, str(log_file)))
    except (ValueError, TypeError, AttributeError, ImportError) as error:
        cause = error.__cause__ or error
        raise InvalidOption(f"log.yaml is not a valid logging configuration: {error} ({cause})") from error


def own_log_name(logs: Path) -> str:
    """Name of the file in a directory that this process's lines go to; empty = they go elsewhere."""
    path = os.environ.get(LOG_FILE_ENVIRONMENT, "")
    return Path(path).name if path and Path(path).parent == logs else ""


def own_output_name(logs: Path) -> str:
    """Name of the file in a directory that this process's standard output goes to; empty = elsewhere."""
    try:
        path = Path(os.readlink("/proc/self/fd/1"))
    except OSError:
        return ""
    return path.name if path.parent == logs.resolve() and path.is_file() else ""


def _substitute(node: Any, log_file: str) -> Any:
    if isinstance(node, dict):
        return {key: _substitute(value, log_file) for key, value in node.items()}
    if isinstance(node, list):
        return [_substitute(value, log_file) for value in node]
    return node.replace(LOG_FILE_VARIABLE, log_file) if isinstance(node, str) else node
