"""Directories of the user on this machine.

Flink has no counterpart.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from yarnflow.errors import ConfigError


def cache_directory(environ: Mapping[str, str] | None = None) -> Path:
    """``$XDG_CACHE_HOME/yarnflow``, by default below ``~/.cache``: what can be made again.

    Raises
    ------
    ConfigError
        The user has no home directory.
    """
    env = os.environ if environ is None else environ
    base = Path(env.get("XDG_CACHE_HOME", ""))
    # the specification has relative paths ignored
    if base.is_absolute():
        return base / "yarnflow"
    try:
        home = Path(env.get("HOME") or Path.home())
    except RuntimeError as error:
        raise ConfigError("no home directory is known; set XDG_CACHE_HOME to a directory of yours") from error
    return home / ".cache" / "yarnflow"


@contextmanager
def writing_to(directory: Path) -> Iterator[None]:
    """Turn the system's errors about files of the cache into one that says what to do.

    Raises
    ------
    ConfigError
        The directory cannot be written to.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(
            f"cannot write to {directory}: {reason}; set XDG_CACHE_HOME to a directory of yours with room"
        ) from error
