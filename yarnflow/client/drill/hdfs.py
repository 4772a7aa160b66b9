"""The HDFS drill: the NameNode's safe mode for a while, by Hadoop's own command.

In safe mode HDFS refuses every change, so no batch can be committed.  It is always left again,
whatever ends the drill: a tiny process of its own does it where this one was killed.  Flink has no
counterpart.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Final

from yarnflow.core.ports import Clock
from yarnflow.errors import FileMissing, StorageDenied, StorageError, StorageUnavailable
from yarnflow.process.signals import ending_later

_TIMEOUT_S: Final = 60.0
#: leaving is tried again: a cluster must not be left read-only
_LEAVE_TRIES: Final = 3
_LEAVE: Final = "hdfs dfsadmin -safemode leave"
#: waits for the end of its standard input; a line before that means that nothing is left to do
_WATCH: Final = (
    "trap '' HUP INT TERM; read -r line && exit; "
    'for try in 1 2 3 4 5 6 7 8 9 10 11 12; do "$0" dfsadmin -safemode leave && exit; sleep 5; done'
)

#: command → (exit status, what it printed)
Run = Callable[[Sequence[str]], tuple[int, str]]
#: starts a watch; returns what dismisses it
Watch = Callable[[], Callable[[], None]]


def run_hdfs(arguments: Sequence[str]) -> tuple[int, str]:
    """Run Hadoop's command.

    Raises
    ------
    FileMissing
        There is none.
    StorageUnavailable
        It does not end.
    """
    program = _program()
    try:
        done = subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_TIMEOUT_S,
            start_new_session=True,  # an interrupt of this command must not end the one that repairs
        )
    except subprocess.TimeoutExpired:
        raise StorageUnavailable(
            f"hdfs {' '.join(arguments)} did not end within {_TIMEOUT_S:.0f} s"
        ) from None
    except OSError as error:
        raise FileMissing(f"{program} cannot be run: {error}; see that Hadoop's client works here") from error
    return done.returncode, done.stdout


def watch_over() -> Callable[[], None]:
    """Have safe mode left when this process ends, even by ``kill -9``, before it dismisses the watch.

    Raises
    ------
    FileMissing
        There is no ``hdfs`` command, or no shell.
    """
    program = _program()
    try:
        # nobody but this process has the other end of its standard input
        child = subprocess.Popen(
            ["sh", "-c", _WATCH, program],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise FileMissing(f"sh cannot be run: {error}; a drill of HDFS needs a shell") from error

    def dismiss() -> None:
        child.communicate(b"done\n")

    return dismiss


def _program() -> str:
    program = shutil.which("hdfs")
    if program is None:
        raise FileMissing(
            "HDFS cannot be broken through the cluster, and there is no hdfs command on the PATH; run this "
            "drill on a machine with Hadoop's client, as a superuser of HDFS"
        )
    return program


class SafeModeFault:
    """See :class:`yarnflow.client.drill.run.Fault`.

    Parameters
    ----------
    clock : Clock
    lasts_ms : int
    run, watch : callable
        Replaced in tests.
    """

    def __init__(
        self, clock: Clock, lasts_ms: int, run: Run = run_hdfs, watch: Watch = watch_over
    ) -> None:
        self._clock = clock
        self._lasts_ms = lasts_ms
        self._run = run
        self._watch = watch
        self._dismiss: Callable[[], None] | None = None

    @property
    def lasts_ms(self) -> int:
        """As long as was asked for."""
        return self._lasts_ms

    def check(self) -> tuple[str, int]:
        """See that the NameNode answers and is not in safe mode already."""
        output = self._safemode("get")
        if "ON" in output.split():
            raise StorageUnavailable(
                f"HDFS is in safe mode already ({_line(output)}); leave it first: {_LEAVE}"
            )
        return f"HDFS: safe mode for {self._lasts_ms / 1000:g} s", self._clock.now_ms()

    def inject(self) -> tuple[str, int]:
        """Enter safe mode."""
        # what is interrupted may have been done
        with ending_later():
            self._dismiss = self._watch()
        try:
            self._safemode("enter")
        except StorageDenied:
            self._left()
            raise
        except BaseException:
            self.lift()
            raise
        return f"HDFS: safe mode for {self._lasts_ms / 1000:g} s", self._clock.now_ms()

    def lift(self) -> str:
        """Leave safe mode; an interrupt has to wait for that."""
        with ending_later():
            if self._dismiss is None:
                return ""
            for tries_left in reversed(range(_LEAVE_TRIES)):
                try:
                    self._safemode("leave")
                    break
                except StorageError as error:
                    if not tries_left:
                        raise StorageUnavailable(
                            f"HDFS is still in safe mode: {error}; leave it now: {_LEAVE}"
                        ) from error
            self._left()
        return "HDFS: safe mode was left"

    def _left(self) -> None:
        dismiss, self._dismiss = self._dismiss, None
        if dismiss is not None:
            dismiss()

    def _safemode(self, action: str) -> str:
        status, output = self._run(("dfsadmin", "-safemode", action))
        if status == 0:
            return output
        what = f"hdfs dfsadmin -safemode {action} failed: {_line(output)}"
        if "AccessControlException" in output or "Superuser privilege" in output or "Access denied" in output:
            raise StorageDenied(f"{what}; only a superuser of HDFS may do that: run the drill as one")
        raise StorageUnavailable(f"{what}; see that the NameNode runs and HADOOP_CONF_DIR names it")


def _line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"
