"""Logging of one process: lines as Flink writes them, to a file; the terminal stays quiet.

The set-up is a :func:`logging.config.dictConfig` dictionary (``conf/log.yaml``) in which
``${log.file}`` stands for the process's own file.
"""

from __future__ import annotations

import logging
import logging.config
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from yarnflow.errors import InvalidOption

LOG_FILE_VARIABLE: Final = "${log.file}"
#: environment variable by which a supervisor names its child's log file
LOG_FILE_ENVIRONMENT: Final = "YARNFLOW_LOG_FILE"

DEFAULT_LOGGING: Final[dict[str, Any]] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"flink": {"()": "yarnflow.process.logs.FlinkFormatter"}},
    "handlers": {
        "file": {
            "class": "logging.handlers.RotatingFileHandler",
            "filename": LOG_FILE_VARIABLE,
            "maxBytes": 100 * 1024 * 1024,
            "backupCount": 10,
            "encoding": "utf-8",
            "delay": True,
            "formatter": "flink",
        }
    },
    "root": {"level": "INFO", "handlers": ["file"]},
    "loggers": {
        "py4j": {"level": "WARNING"},
        "thrift": {"level": "WARNING"},
    },
}


class FlinkFormatter(logging.Formatter):
    """``2026-11-20 21:15:28,123 INFO  yarnflow.runtime.dispatcher [] - message``."""

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


def set_up_logging(log_file: Path | None, settings: Mapping[str, Any] | None = None) -> None:
    """Set up logging of this process.

    Parameters
    ----------
    log_file : Path or None
        Where lines go; None = the file ``YARNFLOW_LOG_FILE`` names, else standard error with
        warnings only (clients).
    settings : mapping, optional
        Content of ``log.yaml``; default :data:`DEFAULT_LOGGING`.

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
    try:
        logging.config.dictConfig(_substitute(dict(settings or DEFAULT_LOGGING), str(log_file)))
    except (ValueError, TypeError, AttributeError, ImportError) as error:
        cause = error.__cause__ or error
        raise InvalidOption(f"log.yaml is not a valid logging configuration: {error} ({cause})") from error


def _substitute(node: Any, log_file: str) -> Any:
    if isinstance(node, dict):
        return {key: _substitute(value, log_file) for key, value in node.items()}
    if isinstance(node, list):
        return [_substitute(value, log_file) for value in node]
    return node.replace(LOG_FILE_VARIABLE, log_file) if isinstance(node, str) else node
