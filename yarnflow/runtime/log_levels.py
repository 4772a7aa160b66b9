"""The level of a logger of this process, changed while it runs; by Log4j's words or Python's.

It holds until the process starts again, which has what its configuration says.  Flink counterpart: its
``log4j.properties``, which Log4j reads again when it has changed.
"""

from __future__ import annotations

import logging
from typing import Final

from yarnflow.core.messages import LogLevel
from yarnflow.errors import InvalidOption

logger: Final = logging.getLogger(__name__)

_OFF: Final = logging.CRITICAL + 10
#: Python has nothing below DEBUG
LEVELS: Final[dict[str, int]] = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "CRITICAL": logging.CRITICAL,
    "OFF": _OFF,
    "": logging.NOTSET,
}
#: loggers of Java classes begin so
_JAVA: Final = ("org.", "com.", "io.", "java.", "scala.")


def set_log_level(level: LogLevel) -> None:
    """Change a logger of this process.

    Raises
    ------
    InvalidOption
        There is no such level, or the root logger is to have none.
    """
    number = LEVELS.get(level.level.upper())
    if number is None:
        known = ", ".join(name for name in LEVELS if name)
        raise InvalidOption(f"{level.level!r} is no level of a log; expected one of {known}")
    if number == logging.NOTSET and not level.logger:
        raise InvalidOption("the root logger has no logger above it; name a level")
    logging.getLogger(level.logger or None).setLevel(number)
    name = level.logger or "root"
    # whoever reads the log later sees why it changes here
    logger.warning("Logger %s has level %s from now on.", name, level.level.upper() or "of the one above it")


def is_of_java(name: str) -> bool:
    """Whether a logger is one of a JVM, by its name."""
    return name.startswith(_JAVA)


__all__ = ["LEVELS", "is_of_java", "set_log_level"]
