"""Logging of one process: lines as Flink writes them or as JSON, to a file; the terminal stays quiet.

Every record has the id of the job it concerns as ``job_id``, for formats of a ``log.yaml``, too.

The set-up is that of :mod:`yarnflow.config.log_file`.  Whoever starts a cluster keeps a copy of the
``log.yaml`` he was given in the cluster's directory and names it in the options of the processes,
so that all of them, and those that are started later, log by the same file.
"""

from __future__ import annotations

import copy
import json
import logging
import logging.config
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.log_file import DEFAULT_LOGGING, LOG_FILE_VARIABLE, read_log_file
from yarnflow.config.options import cluster
from yarnflow.core.job.context import current_job
from yarnflow.errors import ConfigError, InvalidOption

#: environment variable by which a supervisor names its child's log file
LOG_FILE_ENVIRONMENT: Final = "YARNFLOW_LOG_FILE"
#: as in the MDC of Flink's log lines
JOB_ID_KEY: Final = "flink-job-id"
#: of the Elastic Common Schema, as Log4j's layout says it
_ECS_VERSION: Final = "1.2.0"
#: formatters by the names a log.yaml has for them
_TEXT: Final = "yarnflow.process.logs.FlinkFormatter"
_JSON: Final = "yarnflow.process.logs.JsonFormatter"


#: Log4j's words for Python's levels
_LEVELS: Final = {"WARNING": "WARN", "CRITICAL": "FATAL"}


class FlinkFormatter(logging.Formatter):
    """``2026-11-20 21:15:28,123 INFO  yarnflow.runtime.dispatcher.dispatcher [] - message``.

    The job's id is between the brackets.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-5s %(name)-40s [%(job_id)s] - %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """The line; Python's WARNING and CRITICAL are Log4j's WARN and FATAL."""
        name = record.levelname
        record.levelname = _LEVELS.get(name, name)
        record.job_id = getattr(record, "job_id", "")
        try:
            return super().format(record)
        finally:
            record.levelname = name


class JsonFormatter(logging.Formatter):
    """One JSON object per line, with the keys of Log4j's EcsLayout, and Flink's ``flink-job-id``."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "@timestamp": at.replace("+00:00", "Z"),
            "ecs.version": _ECS_VERSION,
            "log.level": _LEVELS.get(record.levelname, record.levelname),
            "message": record.getMessage(),
            "log.logger": record.name,
            "process.thread.name": record.threadName,
            "process.pid": record.process,
        }
        if job_id := getattr(record, "job_id", ""):
            line[JOB_ID_KEY] = job_id
        if record.exc_info and record.exc_info[0] is not None:
            line["error.type"] = record.exc_info[0].__qualname__
            line["error.message"] = str(record.exc_info[1])
            line["error.stack_trace"] = self.formatException(record.exc_info)
        # a name of a file may hold what is no text
        return json.dumps(line, ensure_ascii=False, default=str).encode("utf-8", "replace").decode()


def log_settings(configuration: Configuration) -> dict[str, Any] | None:
    """What the options say of logging: the ``log.yaml`` they name, in the form they name; None = ours.

    Raises
    ------
    ConfigError
        The file cannot be used; the message has file and line.  Or the form cannot be had with it.
    """
    settings = _own_settings(configuration)
    if configuration.get(cluster.LOG_FORMAT) == "text":
        return settings
    changed = copy.deepcopy(DEFAULT_LOGGING if settings is None else settings)
    formatters = [one for one in changed.get("formatters", {}).values() if one.get("()") == _TEXT]
    if not formatters:
        raise ConfigError(
            f"{cluster.LOG_FORMAT.key} is json, and {configuration.get(cluster.LOG_CONFIG_FILE)} has no "
            f"formatter {_TEXT} that it could replace; leave the option out, or use that formatter"
        )
    for formatter in formatters:
        formatter["()"] = _JSON
    return changed


def _own_settings(configuration: Configuration) -> dict[str, Any] | None:
    name = configuration.get(cluster.LOG_CONFIG_FILE)
    return read_log_file(Path(name).expanduser()) if name else None


def keep_log_file(configuration: Configuration, kept: Path) -> dict[str, str]:
    """Copy the ``log.yaml`` that the options name, for the processes of a cluster.

    Parameters
    ----------
    kept : Path
        Where the copy goes; not written when the options name none.

    Returns
    -------
    dict
        Options by which the processes find the copy.

    Raises
    ------
    ConfigError
        It cannot be used; the message has file and line.
    """
    if _own_settings(configuration) is None:
        return {}
    try:
        kept.write_bytes(Path(configuration.get(cluster.LOG_CONFIG_FILE)).expanduser().read_bytes())
    except OSError as error:
        raise ConfigError(f"cannot write {kept}: {error.strerror}") from error
    return {cluster.LOG_CONFIG_FILE.key: str(kept)}


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
    logging.setLogRecordFactory(_record)
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


def _record(*arguments: Any, **named: Any) -> logging.LogRecord:
    record = logging.LogRecord(*arguments, **named)
    record.job_id = current_job()
    return record


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
