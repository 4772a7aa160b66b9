"""Real servers for tests: each in a temporary directory, on a port of its own.

``scripts/test`` installs what is missing.  Some refuse to run as root, so root starts them as ``nobody``.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import psutil

from integration.conftest import wait_until
from tests.patience import PATIENCE

_Server = TypeVar("_Server", bound="Server")


class Server(ABC):
    """A server, running."""

    #: ends it in order, as fast as it can
    quick_stop = signal.SIGTERM

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="yarnflow-server-"))
        self._owner = "nobody" if os.geteuid() == 0 else None
        if self._owner is not None:
            shutil.chown(self.directory, self._owner)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._create()
        self.start()
        self._prepare()

    def __getstate__(self) -> dict[str, Any]:
        """For functions of a job, which only connect."""
        return {**self.__dict__, "_process": None}

    @abstractmethod
    def _create(self) -> None:
        """Make the files."""

    @abstractmethod
    def _command(self) -> list[str]:
        """What runs the server in the foreground."""

    def _prepare(self) -> None:
        """After the first start."""

    def _environment(self) -> dict[str, str]:
        """Variables for it, beside those of the test."""
        return {}

    def start(self) -> None:
        """Start it if it does not run, and wait until it answers."""
        if self._process is not None:
            return
        with (self.directory / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._as_owner()
            )
        try:
            wait_until(self._answers, f"the server in {self.directory}")
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """``kill -9`` of the server and all its processes: nothing is ended in order."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """It does not answer any more, as if its machine were gone; :meth:`kill` ends it as well."""
        assert self._process is not None
        main = psutil.Process(self._process.pid)
        for process in (main, *main.children(recursive=True)):
            process.suspend()

    def stop(self) -> None:
        """End it for good and remove its files."""
        self._end(self.quick_stop)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.directory / "log").read_text()[-2000:]
        with closing(socket.socket()) as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0 and self._ready()

    def _ready(self) -> bool:
        return True

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        family: list[psutil.Process] = []
        with suppress(psutil.NoSuchProcess):
            # some have process groups of their own
            family = psutil.Process(self._process.pid).children(recursive=True)
        self._process.send_signal(number)
        if number is signal.SIGKILL:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            for process in family:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        self._process.wait(PATIENCE.process_s)
        psutil.wait_procs(family, 60)
        self._process = None

    def _as_owner(self) -> dict[str, Any]:
        owner = {} if self._owner is None else {"user": self._owner, "group": "nogroup"}
        environment = {**os.environ, **self._environment()}
        return {"start_new_session": True, "cwd": self.directory, "env": environment, **owner}

    def _run_program(self, *command: str) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False, **self._as_owner())
        assert done.returncode == 0, f"{command[0]}: {done.stdout[-1000:]}{done.stderr[-1000:]}"


def free_port() -> int:
    """A port that nobody listens at, see :func:`free_ports`."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at.

    Below those that the system hands out: of these one could be another process's by the time a server
    has started.  At random, as tests beside this one take some, too.
    """
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    below = range(max(1024, lowest - 20_000), lowest)
    # 0 = one of the system's own, where it has all
    wanted = [*random.sample(below, len(below)), *[0] * count]
    with ExitStack() as held:
        ports: list[int] = []
        for port in wanted:
            if len(ports) == count:
                break
            taken = held.enter_context(socket.socket())
            with suppress(OSError):
                taken.bind(("127.0.0.1", port))
                ports.append(taken.getsockname()[1])
    return ports


@contextmanager
def running(kind: type[_Server]) -> Iterator[_Server]:
    """A new server, which is gone afterwards."""
    server = kind()
    try:
        yield server
    finally:
        server.stop()


def program(name: str, *directories: Path) -> str:
    """The path of a server's program, looked for in some directories as well, the last of them first."""
    found = shutil.which(name)
    found = found or shutil.which(name, path=os.pathsep.join(map(str, sorted(directories, reverse=True))))
    assert found is not None, f"{name} is missing; scripts/test installs it"
    return found
