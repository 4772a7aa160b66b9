"""Where a cluster keeps its files on this machine.

One directory per cluster, mode 0700, holding ``secret``, ``conf.json``, ``jobmanager.json`` and
``logs/``; the runtime may put checkpoints and scratch space below it, so it lies in
``io.tmp.dirs`` and not on the small memory file system of ``XDG_RUNTIME_DIR``.  A local
cluster's directory goes with it, except what is needed to understand a failed job; of those
directories only the newest few are kept.  The owner
holds a lock on it, so that what a killed owner left can be told from what is in use.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from yarnflow.config.configuration import Configuration
from yarnflow.config.log_file import LOG_FILE_NAME
from yarnflow.config.options import cluster, security
from yarnflow.errors import ConfigError

_LOCK: Final = "owner.lock"
_KEEP: Final = "keep"
#: what directories of ``local`` clusters are called
LOCAL_NAME: Final = "local"
_OF_LOCAL_CLUSTER: Final = re.compile(rf"/yarnflow-\d+/{LOCAL_NAME}-[0-9a-f]{{8}}(/|$)")
#: directories of failed jobs that are kept when the next cluster of their name starts
KEPT_DIRECTORIES: Final = 5
#: what stays of a local cluster whose job failed
KEPT_NAMES: Final = frozenset({"logs", "checkpoints", _KEEP})


def base_directory(tmp_dir: str) -> Path:
    """The user's own directory for all clusters, created with mode 0700.

    Raises
    ------
    ConfigError
        It belongs to somebody else or others may write to it.
    """
    path = Path(tmp_dir).expanduser().absolute() / f"yarnflow-{os.geteuid()}"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise ConfigError(f"cannot create {path}: {error.strerror} (option io.tmp.dirs)") from error
    # anybody can create names in a shared temporary directory
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise ConfigError(f"{path} is not a directory of this user; choose another io.tmp.dirs")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise ConfigError(f"{path} is open to others; run: chmod 700 {path}")
    return path


@dataclass(frozen=True, slots=True)
class ClusterDirectory:
    """Paths of one cluster's files."""

    path: Path
    logs: Path
    _lock_fd: int = -1

    @property
    def secret_file(self) -> Path:
        """The cluster secret, unless an option names another file."""
        return self.path / "secret"

    @property
    def conf_file(self) -> Path:
        """Effective options of the cluster, for its processes."""
        return self.path / "conf.json"

    @property
    def log_settings_file(self) -> Path:
        """Copy of the ``log.yaml`` the cluster was started with, if there was one."""
        return self.path / LOG_FILE_NAME

    @property
    def jobmanager_file(self) -> Path:
        """Where the serving JobManager writes its address."""
        return self.path / "jobmanager.json"

    @property
    def scratch(self) -> Path:
        """Spark's temporary files in drivers, which go with them."""
        return self.path / "scratch"

    def remove(self, *, keep_evidence: bool) -> None:
        """Delete the directory; with ``keep_evidence`` logs and checkpoints stay."""
        if keep_evidence:
            (self.path / _KEEP).touch()
            for entry in self.path.iterdir():
                if entry.name not in KEPT_NAMES:
                    _remove(entry)
        else:
            shutil.rmtree(self.path, ignore_errors=True)
        if self._lock_fd >= 0:
            os.close(self._lock_fd)


def create_cluster_directory(tmp_dir: str, name: str, log_dir: str = "") -> ClusterDirectory:
    """Make a fresh directory ``<name>-<random>`` and lock it for this process.

    Parameters
    ----------
    log_dir : str
        Directory for logs (option ``yarnflow.log.dir``); empty = ``logs`` inside.
    """
    base = base_directory(tmp_dir)
    remove_stale(base, name)
    remove_old_evidence(base, name)
    random = secrets.token_hex(4)
    path = base / f"{name}-{random}"
    hidden = base / f".{random}"
    hidden.mkdir(mode=0o700)
    # locked before it has a name that remove_stale of another process looks at
    first_lock = _lock(hidden)
    try:
        hidden.rename(path)
        return open_cluster_directory(path, log_dir)
    finally:
        os.close(first_lock)


def open_cluster_directory(path: Path, log_dir: str = "") -> ClusterDirectory:
    """Use (or create) a directory of a given path, as standalone clusters do."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        logs = Path(log_dir).expanduser().absolute() if log_dir else path / "logs"
        logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = _lock(path)
    except OSError as error:
        raise ConfigError(f"cannot use {error.filename} for the cluster: {error.strerror}") from error
    return ClusterDirectory(path=path, logs=logs, _lock_fd=lock)


def log_directory(configuration: Configuration, cluster_dir: Path) -> Path:
    """Where the processes of a cluster in that directory write their logs."""
    log_dir = configuration.get(cluster.LOG_DIR)
    return Path(log_dir).expanduser().absolute() if log_dir else cluster_dir / "logs"


def _lock(path: Path) -> int:
    lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    # shared: supervisors of one standalone cluster on one machine use one directory
    fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def owner_lives(path: Path) -> bool:
    """Whether a process holds the lock of a cluster's directory."""
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def running_directories(base: Path, name: str) -> list[ClusterDirectory]:
    """Directories of clusters called ``name`` that are in use, by name.

    Parameters
    ----------
    base : Path
        Of :func:`base_directory`.

    Notes
    -----
    What is not a private directory of this user is passed over.
    """
    found = []
    for path in sorted(base.glob(f"{name}-*")):
        try:
            status = path.lstat()
        except OSError:
            continue  # its cluster has just ended
        private = status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077
        if stat.S_ISDIR(status.st_mode) and private and owner_lives(path):
            found.append(ClusterDirectory(path=path, logs=path / "logs"))
    return found


def is_of_local_cluster(path: str) -> bool:
    """Whether a path (or URI) is in the directory of a ``local`` cluster, and so goes with it."""
    return _OF_LOCAL_CLUSTER.search(path) is not None


def remove_stale(base: Path, name: str) -> list[Path]:
    """Delete directories of clusters called ``name`` whose owner is gone; return them."""
    removed = []
    for path in base.glob(f"{name}-*"):
        if (path / _KEEP).exists():
            continue
        try:
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue  # being created this very moment, or not one of ours
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
            removed.append(path)
        except BlockingIOError:
            pass
        finally:
            os.close(lock)
    return removed


def remove_old_evidence(base: Path, name: str, keep: int = KEPT_DIRECTORIES) -> list[Path]:
    """Delete what stayed of failed jobs of clusters called ``name``, but the newest; return it."""
    kept: list[tuple[int, Path]] = []
    for path in base.glob(f"{name}-*"):
        try:
            kept.append(((path / _KEEP).stat().st_mtime_ns, path))
        except OSError:
            continue  # in use, or removed by another process this very moment
    old = [path for _, path in sorted(kept, reverse=True)[keep:]]
    for path in old:
        shutil.rmtree(path, ignore_errors=True)
    return old


def temporary_directory(configuration: Configuration) -> str:
    """First directory of ``io.tmp.dirs``, else the system's."""
    directories = configuration.get(cluster.IO_TMP_DIRS)
    return directories.replace(":", ",").split(",")[0].strip() or tempfile.gettempdir()


def standalone_directory(configuration: Configuration) -> Path:
    """Runtime directory of the standalone cluster of that name on this machine."""
    name = configuration.get(cluster.CLUSTER_ID).strip("/").replace("/", "_")
    return base_directory(temporary_directory(configuration)) / f"standalone-{name}"


def standalone_secret_file(configuration: Configuration) -> Path:
    """The secret of a standalone cluster: as configured, else in its directory here."""
    path = configuration.get(security.CLUSTER_SECRET_FILE)
    return Path(path).expanduser() if path else standalone_directory(configuration) / "secret"


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file at once (temporary file, rename) with mode 0600."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        json.dump(dict(content), file)
    temporary.rename(path)


def read_json(path: Path) -> dict[str, Any] | None:
    """Read a JSON object; None when there is none (yet)."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
