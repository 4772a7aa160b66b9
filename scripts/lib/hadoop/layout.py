"""The one folder of a cluster: what lies where in it, its state file, its lock, its ports."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pwd
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hadoop.errors import USAGE, ClusterError
from hadoop.output import say
from hadoop.ports import free_ports

STARTING, RUNNING, STOPPED = "starting", "running", "stopped"
NODE_MANAGERS = 2

# what each kind of daemon listens on
_PORTS = {
    "zookeeper": ("client", "peer", "election"),
    "namenode": ("rpc", "http"),
    "datanode": ("data", "ipc", "http"),
    "resourcemanager": ("rpc", "scheduler", "tracker", "admin", "http"),
    "nodemanager": ("rpc", "localizer", "http"),
}


def user_name() -> str:
    """Who the daemons run as, and with that the superuser of HDFS."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        raise ClusterError(f"user id {os.getuid()} has no name in /etc/passwd; Hadoop needs one") from None


@dataclass
class State:
    """What the state file holds: all that is needed to write the settings and start a daemon again."""

    java_home: str
    jars: str
    # archive of loaded classes; empty = none
    archive: str = ""
    zookeepers: int = 1
    memory_mb: int = 8192
    vcores: int = 8
    settings: dict[str, str] = field(default_factory=dict)
    ports: dict[str, dict[str, int]] = field(default_factory=dict)
    phase: str = STARTING

    @property
    def daemons(self) -> list[str]:
        """Names, in the order in which they are shown."""
        return [
            *(f"zookeeper-{number}" for number in range(1, self.zookeepers + 1)),
            "namenode",
            "datanode",
            "resourcemanager",
            *(f"nodemanager-{number}" for number in range(1, NODE_MANAGERS + 1)),
        ]

    def choose_ports(self) -> None:
        """Take free ports, other ones than before."""
        wanted = [(daemon, use) for daemon in self.daemons for use in _PORTS[daemon.partition("-")[0]]]
        self.ports = {daemon: {} for daemon in self.daemons}
        for (daemon, use), port in zip(wanted, free_ports(len(wanted))):
            self.ports[daemon][use] = port


class Layout:
    """Paths below the folder of a cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.realpath(folder))
        self.conf = self.folder / "etc/hadoop"
        self.bin = self.folder / "bin"
        self.data = self.folder / "data"
        self.logs = self.folder / "logs"
        self.run = self.folder / "run"
        self.state_file = self.folder / "yarnflow-hadoop.json"
        if not re.fullmatch(r"[\w./+@~-]+", str(self.folder)):
            # Hadoop reads these paths as URIs, lists and class paths
            raise ClusterError(
                f"{self.folder}: Hadoop takes no blanks, commas, colons or the like in paths; name another",
                USAGE,
            )

    def conf_of(self, daemon: str) -> Path:
        """Folder with the settings of one daemon."""
        return self.folder / "etc" / daemon if daemon.startswith(("nodemanager", "zookeeper")) else self.conf

    def log_of(self, daemon: str) -> Path:
        """Everything a daemon says."""
        return self.logs / f"{daemon}.log"

    def arguments_of(self, daemon: str) -> Path:
        """The JVM's arguments; being named on the command line it tells whose process that is."""
        return self.run / f"{daemon}.args"

    def load(self) -> State | None:
        """The cluster of this folder, if there is one."""
        try:
            text = self.state_file.read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            return State(**json.loads(text))
        except (ValueError, TypeError):
            raise ClusterError(
                f"{self.state_file} is damaged or of another version; "
                f"`scripts/hadoop stop --dir {self.folder}` ends that cluster"
            ) from None

    def save(self, state: State) -> None:
        """Write the state file; a reader sees the old or the new one."""
        new = self.state_file.with_suffix(".new")
        new.write_text(json.dumps(asdict(state), indent=2) + "\n", encoding="utf-8")
        new.replace(self.state_file)

    def running(self) -> State:
        """The cluster of this folder, which must be there and not stopped."""
        state = self.load()
        if state is None or state.phase == STOPPED:
            raise ClusterError(f"no cluster runs in {self.folder}; start one with `scripts/hadoop start`")
        return state

    def is_foreign(self) -> bool:
        """Whether the folder holds something and that is no cluster of ours."""
        if not self.folder.is_dir():
            return self.folder.exists()
        names = {entry.name for entry in self.folder.iterdir()}
        # interrupted at the very first file
        names.discard(self.state_file.with_suffix(".new").name)
        return bool(names) and self.state_file.name not in names

    @contextlib.contextmanager
    def locked(self, create: bool) -> Iterator[bool]:
        """Keep other runs off this folder; yields whether it exists.

        The lock is on the folder itself, so nothing is left of it when the folder is removed.
        """
        while True:
            if create:
                try:
                    self.folder.mkdir(parents=True, exist_ok=True)
                except OSError as error:
                    raise ClusterError(f"{self.folder} cannot be made: {error.strerror}") from None
            try:
                descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                yield False
                return
            except OSError as error:
                raise ClusterError(f"{self.folder} cannot be used: {error.strerror}") from None
            try:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    say(f"another run works on {self.folder}; waiting for it")
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                if not _is_still(descriptor, self.folder):
                    # removed while we waited
                    continue
                yield True
                return
            finally:
                os.close(descriptor)

    def clear(self, keep_logs: bool) -> None:
        """Remove everything below the folder; with ``keep_logs`` all but the logs and the state file."""
        kept = {self.logs, self.state_file} if keep_logs else set()
        # the state file last: as long as it is there, the folder is known to be ours
        for entry in sorted(self.folder.iterdir(), key=lambda entry: entry == self.state_file):
            if entry in kept:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, onerror=_make_writable)
            else:
                entry.unlink()


def _is_still(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _make_writable(function: Callable[..., Any], path: str, error: Any) -> None:
    """For folders that a container made read-only."""
    if issubclass(error[0], FileNotFoundError):
        return
    if not issubclass(error[0], PermissionError):
        raise error[1]
    for target in (os.path.dirname(path), path):
        if os.path.isdir(target) and not os.path.islink(target):
            os.chmod(target, stat.S_IRWXU)
    if function in (os.unlink, os.rmdir):
        function(path)
    else:
        shutil.rmtree(path)
