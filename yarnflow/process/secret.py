"""The cluster's secret: one file only its owner can read.

Both sides of every Thrift connection prove that they know it, and Spark's per-job secrets are
derived from it.  Never logged, never passed in arguments or in the environment.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from pathlib import Path
from typing import Final

from yarnflow.errors import ConfigError, FileMissing

SECRET_BYTES: Final = 32
_HINT: Final = "(option security.cluster-secret-file)"


def create_secret(path: Path) -> str:
    """Write a new secret to ``path``, which must not exist, with mode 0600.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    text = secrets.token_hex(SECRET_BYTES)
    try:
        # under another name first: processes that start at the same moment see all of it or nothing
        descriptor, hidden = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(descriptor, "w") as file:
                # the mode must not depend on the umask of whoever starts the cluster
                os.fchmod(file.fileno(), 0o600)
                file.write(text + "\n")
            os.link(hidden, path, follow_symlinks=False)
        finally:
            os.unlink(hidden)
    except OSError as error:
        raise ConfigError(
            f"cannot create the cluster secret file {path}: {error.strerror} {_HINT}"
        ) from error
    return text


def read_secret(path: Path) -> str:
    """Read a secret file, refusing one that others can read or that belongs to somebody else.

    Raises
    ------
    ConfigError
        No file, a wrong owner or mode, or not a secret; the message says what to do.
    """
    try:
        text = read_private_file(path, "cluster secret file", _HINT).strip()
    except FileMissing as error:
        raise ConfigError(
            f"cluster secret file {path} does not exist; copy it from the JobManager's machine {_HINT}"
        ) from error
    if len(text) < 2 * SECRET_BYTES or any(character not in "0123456789abcdef" for character in text):
        raise ConfigError(
            f"cluster secret file {path} does not hold at least {2 * SECRET_BYTES} hexadecimal digits; "
            f"make one with: openssl rand -hex {SECRET_BYTES} > {path}"
        )
    return text


def read_private_file(path: Path, what: str, hint: str) -> str:
    """The text of a short file, refusing one that others can read or that belongs to somebody else.

    Parameters
    ----------
    what, hint : str
        What it is, and the option that names it, for messages.

    Raises
    ------
    FileMissing
        There is none.
    ConfigError
        It cannot be read, or has a wrong owner or mode.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise FileMissing(f"{what} {path} does not exist {hint}") from error
    except OSError as error:
        raise ConfigError(f"cannot read the {what} {path}: {error.strerror} {hint}") from error
    try:
        _check_owner_and_mode(path, os.fstat(descriptor), what, hint)
        return os.read(descriptor, 4096).decode("ascii", "replace")
    finally:
        os.close(descriptor)


def _check_owner_and_mode(path: Path, status: os.stat_result, what: str, hint: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ConfigError(f"{what} {path} is not a regular file {hint}")
    if status.st_uid not in (os.geteuid(), 0):
        raise ConfigError(
            f"{what} {path} belongs to user {status.st_uid}, not to {os.geteuid()}; "
            f"run as its owner or make a copy of your own {hint}"
        )
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        raise ConfigError(f"{what} {path} can be read by others (mode {mode:04o}); run: chmod 600 {path}")


def ensure_secret(path: Path) -> str:
    """Read the secret at ``path``, or create it when there is none."""
    try:
        return create_secret(path) if not path.exists() else read_secret(path)
    except ConfigError:
        # two processes of one cluster may start at the same moment: the other one won
        if path.exists():
            return read_secret(path)
        raise
