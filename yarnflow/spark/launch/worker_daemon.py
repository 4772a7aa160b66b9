"""The process that Python workers are forked from, with the slow imports done once.

Spark's workers end without what was registered with ``atexit``; these do it, so that functions of the
program are closed.

Spark's own daemon imports nothing of what a vectorised function needs, so every worker it forks
spends most of a second of CPU time on importing pandas and pyarrow again.  Here they are there
before the first fork.  Runs on TaskManagers, as ``spark.python.daemon.module``.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import signal
import sys
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from typing import Any, Final

from yarnflow.core.resources.attachment import PYTHON_MEMORY_VARIABLE, SMALLEST_WORKER_LIMIT_MIB

#: Spark's, in MiB
_LIMIT_VARIABLE: Final = "PYSPARK_EXECUTOR_MEMORY_MB"
_PRELOADED: Final = (
    "pyspark.worker",
    "pyarrow",
    "pandas",
    "pyspark.sql.pandas.serializers",
    "pyspark.sql.conversion",
)

_STDERR: Final = 2
#: for all exit callbacks of a worker together
_EXIT_TIMEOUT_S: Final = 5


def preload() -> None:
    """Import what workers need; a worker that misses something reports it itself."""
    # threads do not survive a fork, and a worker has one core anyway
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in _PRELOADED:
        try:
            importlib.import_module(name)
        except Exception as error:
            print(f"{name} could not be imported ahead: {error}", file=sys.stderr)
    # all this stays for ever: no collection in a worker needs to look at it, and no page of it is copied
    gc.freeze()


class ExitCallbacks:
    """Wraps a worker's main, which handles one task, so that a worker that ends runs its exit callbacks.

    Parameters
    ----------
    main : callable
        From the streams of a task; raises SystemExit when the worker must end.
    error_fd : int, optional
        Standard error of the callbacks.
    """

    def __init__(self, main: Callable[[Any, Any], None], error_fd: int | None = None) -> None:
        self._main = main
        self._error_fd = error_fd
        self._worker = 0

    def __call__(self, infile: Any, outfile: Any) -> None:
        if self._worker != os.getpid():
            self._worker = os.getpid()
            # those of the daemon are the daemon's
            atexit._clear()
        # the daemon sends it when the executor is gone; a task has set it to its default
        signal.signal(signal.SIGHUP, self._hang_up)
        try:
            self._main(infile, outfile)
        except SystemExit as end:
            if end.code:
                # what went wrong is told first
                with suppress(Exception):
                    outfile.flush()
                self._run()
            raise

    def _hang_up(self, number: int, frame: object) -> None:
        self._run()
        os._exit(0)

    def _run(self) -> None:
        # a function that hangs in its close() keeps no process alive
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_EXIT_TIMEOUT_S)
        if self._error_fd is not None:
            os.dup2(self._error_fd, _STDERR)
        atexit._run_exitfuncs()
        signal.alarm(0)


def limit_memory(environment: MutableMapping[str, str]) -> None:
    """Have workers limited to the executor's share, where Spark limits them to all of the TaskManager's.

    Parameters
    ----------
    environment : mapping
        Of this process, which workers inherit; changed.
    """
    limit, share = environment.get(_LIMIT_VARIABLE, ""), environment.get(PYTHON_MEMORY_VARIABLE, "")
    if limit and share:
        environment[_LIMIT_VARIABLE] = str(min(int(limit), max(int(share), SMALLEST_WORKER_LIMIT_MIB)))


def executors_error_fd() -> int | None:
    """Standard error of the process that started this one; None if it cannot be had.

    The executor passes on what comes to this process's own, but not at its end, when functions are closed.
    """
    try:
        return os.open(f"/proc/{os.getppid()}/fd/2", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    except OSError:
        return None


if __name__ == "__main__":
    from pyspark.daemon import manager

    error_fd = executors_error_fd()
    # it has done its work: what a function starts is Python as its user knows it
    os.environ.pop("PYTHONSAFEPATH", None)
    limit_memory(os.environ)
    preload()
    import pyspark.worker

    pyspark.worker.main = ExitCallbacks(pyspark.worker.main, error_fd)
    manager()
