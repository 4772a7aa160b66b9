"""Child processes that cannot outlive their parent.

Every child is started in a session of its own and through a small prefix that asks the kernel
to kill it when its parent ends (``PR_SET_PDEATHSIG``), so not even ``kill -9`` of a parent
leaves a process behind.  When the head of a session ends, the rest of its process group is
killed before the head is reaped, while the group's number cannot belong to anybody else.

The kernel sends the signal when the *thread* that forked ends, not the process; therefore all
children are forked by one thread that lives as long as the process.  Linux only.

This module never decides whether something is started again; see
:mod:`yarnflow.process.supervisor`.  Flink leaves this to YARN and to shell scripts.
"""

from __future__ import annotations

import logging
import os
import secrets
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Final

from yarnflow.errors import ResourceError
from yarnflow.process.output.ended_logs import open_head
from yarnflow.process.output.rotation import own_rotation
from yarnflow.process.output.series import rotated_file

#: exit status of the prefix when the parent was gone before the command could start
ORPHANED_EXIT_STATUS: Final = 97

# PPID is read by the shell when it starts, hence after the death signal was set: a parent that
# died before that moment shows in it, one that dies later triggers the signal.
_SHELL_CHECK: Final = '[ "$PPID" = "$0" ] || exit 97; exec "$@"'
_PYTHON_CHECK: Final = (
    "import ctypes,os,sys\n"
    "ctypes.CDLL(None,use_errno=True).prctl(1,int(sys.argv[2]),0,0,0)\n"
    "if os.getppid()!=int(sys.argv[1]):sys.exit(97)\n"
    "try:os.execvp(sys.argv[3],sys.argv[3:])\n"
    "except OSError as e:print(f'{sys.argv[3]}: {e.strerror}',file=sys.stderr);sys.exit(127)\n"
)

logger: Final = logging.getLogger(__name__)

#: how often directories are tried to be removed, and the pause in between
_REMOVALS: Final = 5
_REMOVE_AGAIN_S: Final = 0.5

ExitListener = Callable[[int], None]
_Start = Callable[[], "subprocess.Popen[bytes]"]


@lru_cache(maxsize=1)
def _setpriv() -> str | None:
    """Path of a ``setpriv`` that knows ``--pdeathsig``, or None (old util-linux, busybox)."""
    path = shutil.which("setpriv")
    if path is None or shutil.which("sh") is None:
        return None
    try:
        probe = subprocess.run(
            [path, "--pdeathsig", "KILL", "true"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=5,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return path if probe.returncode == 0 else None


def wrap_command(
    command: Sequence[str], *, setpriv: bool = True, death_signal: signal.Signals = signal.SIGKILL
) -> list[str]:
    """Prefix ``command`` so that it dies with the calling process.

    Parameters
    ----------
    command : sequence of str
        Program and arguments; the program is looked up on ``PATH``.
    setpriv : bool
        Use ``setpriv`` where there is one (2 ms); else a bare interpreter does it (25 ms).
    death_signal : Signals
        What the kernel sends it then; TERM for what must clean up.

    Returns
    -------
    list of str
        A command for :class:`subprocess.Popen`.  It must be forked by a thread that lives as
        long as the process; :func:`spawn` does that.
    """
    tool = _setpriv() if setpriv else None
    parent = str(os.getpid())
    if tool is not None:
        name = death_signal.name.removeprefix("SIG")
        return [tool, "--pdeathsig", name, "sh", "-c", _SHELL_CHECK, parent, *command]
    number = str(int(death_signal))
    return [sys.executable, "-I", "-S", "-c", _PYTHON_CHECK, parent, number, *command]


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """How to start one process."""

    name: str
    command: tuple[str, ...]
    #: standard error, and standard output unless that is inherited; None = inherited.  It is rotated when
    #: it is large, so no other process may rotate it
    log_file: Path | None = None
    #: standard output goes where this process's goes, or to ``stdout_fd``
    inherit_stdout: bool = False
    #: file descriptor for standard output; only with ``inherit_stdout``
    stdout_fd: int | None = None
    #: variables over this process's own, or all there are
    environment: Mapping[str, str] = field(default_factory=dict)
    #: ``environment`` is all there are
    whole_environment: bool = False
    cwd: Path | None = None
    #: keep a pipe to its standard input
    stdin_pipe: bool = False
    #: file descriptors it inherits under the same numbers
    pass_fds: tuple[int, ...] = ()
    #: its own: made with mode 0700 before it starts where they are missing; after its end they are no
    #: longer there under these names, and are deleted before this process ends, unless by ``os._exit``
    directories: tuple[Path, ...] = ()


class ChildProcess:
    """A running child; made by :func:`spawn`.

    All methods may be called from any thread.
    """

    def __init__(self, spec: ProcessSpec, popen: subprocess.Popen[bytes], output_from: int = 0) -> None:
        self.spec = spec
        self._popen = popen
        self._output_from = output_from
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._listeners: list[ExitListener] = []
        self._exited = threading.Event()
        self._exit_status = 0

    @property
    def pid(self) -> int:
        """Process id, which is the id of its session and process group as well."""
        return self._popen.pid

    @property
    def alive(self) -> bool:
        """Whether the process has not been reaped yet."""
        return not self._exited.is_set()

    @property
    def exit_status(self) -> int | None:
        """Exit status; negative = killed by that signal; None while it runs."""
        return self._exit_status if self._exited.is_set() else None

    def on_exit(self, listener: ExitListener) -> None:
        """Call ``listener(exit_status)`` once, from the watcher thread; at once when it is over."""
        with self._lock:
            if not self._exited.is_set():
                self._listeners.append(listener)
                return
        listener(self._exit_status)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Exit status, or None after the time."""
        self._exited.wait(timeout_s)
        return self.exit_status

    def write_line(self, line: str) -> bool:
        """Write one line to its standard input; False when it no longer reads."""
        stdin = self._popen.stdin
        if stdin is None:
            raise ValueError(f"{self.spec.name} was started without a pipe to its standard input")
        try:
            with self._write_lock:
                stdin.write(line.encode() + b"\n")
                stdin.flush()
        except (OSError, ValueError):
            return False
        return True

    def signal_group(self, number: signal.Signals) -> None:
        """Signal the whole process group; nothing happens when it is over."""
        with self._lock:
            # the head is reaped under the same lock, so the number is still its own
            if not self._exited.is_set():
                _signal_group(self.pid, number)

    def kill_group(self) -> None:
        """KILL the whole process group; returns at once."""
        self.signal_group(signal.SIGKILL)

    def terminate_group(self, grace_s: float = 5.0) -> int | None:
        """TERM the process group, KILL what is left of it after ``grace_s``; wait for the end."""
        self.signal_group(signal.SIGTERM)
        if self.wait(grace_s) is None:
            self.kill_group()
            self.wait(10.0)
        return self.exit_status

    def output_tail(self, lines: int = 20) -> str:
        """Last lines of its log file, without those of processes that wrote to it before."""
        if self.spec.log_file is None:
            return ""
        return tail(self.spec.log_file, lines, since=self._output_from)

    def _reap(self) -> None:
        with self._lock:
            _signal_group(self.pid, signal.SIGKILL)
            self._exit_status = self._popen.wait()
            # before anybody knows, who might end this process
            remove_directories(self.spec.directories, self.spec.name)
            self._exited.set()
            listeners, self._listeners = self._listeners, []
        if self._popen.stdin is not None:
            try:
                self._popen.stdin.close()
            except OSError:
                pass
        for listener in listeners:
            listener(self._exit_status)


def remove_directories(directories: Iterable[Path], owner: str) -> None:
    """Have directories deleted before this process ends, unless by ``os._exit``; returns at once.

    Gigabytes of files may take their time; others end, and start in the same place, meanwhile.

    Parameters
    ----------
    directories : iterable of Path
        They are no longer there under these names when this returns.
    owner : str
        Whose they were, for the log.
    """
    aside = tuple(filter(None, map(_put_aside, directories)))
    if not aside:
        return
    remover = threading.Thread(target=_remove, args=(aside,), name="remove-directories", daemon=False)
    try:
        remover.start()
    except RuntimeError as error:
        logger.warning("Files of %s stay in %s: %s", owner, aside[0].parent, error)


def _put_aside(directory: Path) -> Path | None:
    """Give it a name nobody else takes; None = there is nothing to be deleted."""
    aside = directory.with_name(f".{directory.name}.{secrets.token_hex(4)}.old")
    try:
        directory.rename(aside)
    except FileNotFoundError:
        return None
    except OSError:
        return directory
    return aside


def _remove(directories: tuple[Path, ...]) -> None:
    for path in directories:
        for _ in range(_REMOVALS):
            shutil.rmtree(path, ignore_errors=True)
            if not path.exists():
                break
            # what it had started in sessions of their own may be a moment from its end
            time.sleep(_REMOVE_AGAIN_S)


def _signal_group(pid: int, number: signal.Signals) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def tail(path: Path, lines: int = 20, limit_bytes: int = 65536, since: int = 0) -> str:
    """Last ``lines`` lines of a file, at most ``limit_bytes``; empty when there is no file.

    What a file lacks that has just been rotated comes from its newest rotated file.

    Parameters
    ----------
    since : int
        Size that the file had before the lines that are asked for; of a file that is smaller now, and so
        has been rotated since, all lines count.
    """
    size = _size(path)
    if since and size >= since:
        end = _end(path, min(limit_bytes, size - since))
        return "\n".join(deque(end.decode("utf-8", "replace").splitlines(), maxlen=lines))
    end = _end(path, limit_bytes)
    if len(end.splitlines()) <= lines:
        # its first line may have begun there; nothing is left of the limit when it has not been read whole
        end = _end(rotated_file(path, 1), limit_bytes - len(end)) + end
    return "\n".join(deque(end.decode("utf-8", "replace").splitlines(), maxlen=lines))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _end(path: Path, limit_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - limit_bytes))
            return file.read(limit_bytes)
    except OSError:
        return b""


class _Spawner:
    """The one thread that forks."""

    def __init__(self) -> None:
        self._requests: SimpleQueue[tuple[_Start, Future[subprocess.Popen[bytes]]]] = SimpleQueue()
        threading.Thread(target=self._run, name="spawner", daemon=True).start()

    def fork(self, start: _Start) -> subprocess.Popen[bytes]:
        done: Future[subprocess.Popen[bytes]] = Future()
        self._requests.put((start, done))
        return done.result()

    def _run(self) -> None:
        while True:
            start, done = self._requests.get()
            try:
                done.set_result(start())
            except BaseException as error:  # handed to the caller, whatever it is
                done.set_exception(error)


class _Watcher:
    """The one thread that waits for the ends of all children."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._new: SimpleQueue[tuple[int, ChildProcess]] = SimpleQueue()
        threading.Thread(target=self._run, name="exit-watcher", daemon=True).start()

    def watch(self, child: ChildProcess) -> None:
        # selectors are not safe for registration from other threads while one selects
        self._new.put((os.pidfd_open(child.pid), child))
        os.write(self._wake_write, b"x")

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    os.read(self._wake_read, 4096)
                    while not self._new.empty():
                        descriptor, child = self._new.get()
                        self._selector.register(descriptor, selectors.EVENT_READ, child)
                    continue
                self._selector.unregister(key.fd)
                os.close(key.fd)
                try:
                    key.data._reap()
                except Exception:  # a listener's bug must not blind us to the other children
                    sys.excepthook(*sys.exc_info())


_threads_lock = threading.Lock()
_threads: tuple[_Spawner, _Watcher] | None = None


def _workers() -> tuple[_Spawner, _Watcher]:
    global _threads
    with _threads_lock:
        if _threads is None:
            _threads = (_Spawner(), _Watcher())
        return _threads


def _after_fork() -> None:
    # a forked copy of this process has none of its threads, also not one that holds the lock
    global _threads_lock, _threads
    _threads_lock, _threads = threading.Lock(), None


os.register_at_fork(after_in_child=_after_fork)


def spawn(spec: ProcessSpec) -> ChildProcess:
    """Start a child in its own session that dies with this process.

    Raises
    ------
    ResourceError
        The program cannot be started, or its log file or directories not be written.
    """
    spawner, watcher = _workers()
    command = wrap_command(spec.command)
    inherited = {} if spec.whole_environment else os.environ
    try:
        for path in spec.directories:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        log: IO[bytes] | int | None = None
        output_from = 0
        if spec.log_file is not None:
            spec.log_file.parent.mkdir(parents=True, exist_ok=True)
            # the group may read it: YARN's NodeManager does, which collects the logs of containers
            log = open_head(spec.log_file, 0o640)
            output_from = os.fstat(log).st_size
        stdout = spec.stdout_fd if spec.inherit_stdout else log
        try:
            popen = spawner.fork(
                lambda: subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE if spec.stdin_pipe else subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=log,
                    env={**inherited, **spec.environment},
                    cwd=spec.cwd,
                    pass_fds=spec.pass_fds,
                    start_new_session=True,
                )
            )
        finally:
            if isinstance(log, int):
                os.close(log)
    except OSError as error:
        for path in spec.directories:
            shutil.rmtree(path, ignore_errors=True)
        what = error.strerror or str(error)
        if error.filename:
            what += f": {error.filename}"
        raise ResourceError(f"cannot start process {spec.name} ({spec.command[0]}): {what}") from error
    child = ChildProcess(spec, popen, output_from)
    if spec.log_file is not None:
        log_file, rotation = spec.log_file, own_rotation()
        rotation.watch(log_file)
        child.on_exit(lambda _status: rotation.release(log_file))
    watcher.watch(child)
    return child
