"""An unmodified PySpark script as a job.

Decides how a script's ``main`` meets the driver's session and what its end means.  The session
is there already: ``SparkSession.builder.getOrCreate()`` and ``SparkContext()`` return it whatever
master or name the script asks for, and ``stop()`` ends the script's queries but not the session.
Sessions that the script makes beside it are as good.
Streaming queries that are still active when main returns are waited for.  Never restarts
anything.  Flink counterpart: application mode's ``PackagedProgram``.
"""

from __future__ import annotations

import functools
import io
import logging
import signal
import sys
import threading
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from yarnflow.core.checkpoint.messages import CheckpointOrder, CheckpointOutcome
from yarnflow.errors import (
    InvalidOption,
    ProgramFailed,
    ProgramNotFound,
    ProgramSyntaxError,
    UserCodeError,
    YarnflowError,
)
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.spark.checkpoints.job import Fence, JobIdentity, no_fence
from yarnflow.spark.checkpoints.saved_queries import SavedState
from yarnflow.spark.checkpoints.script import ScriptCheckpoints
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.progress.collector import ProgressCollector
from yarnflow.spark.progress.listener import listen
from yarnflow.spark.run.state_errors import explained
from yarnflow.spark.run.user_errors import map_spark_error, map_texts, user_traceback_of
from yarnflow.spark.script.identity import SESSION_LOCATION, QueryIdentities
from yarnflow.spark.script.kept_session import kept_session
from yarnflow.spark.script.places import CallPlaces, place_of
from yarnflow.spark.script.queries import ScriptQueries
from yarnflow.spark.script.session_options import NoPreparation, Preparation

logger = logging.getLogger(__name__)

_POLL_S: Final = 0.2
#: how long main may take to end by itself after its queries were stopped
_GRACE_S: Final = 2.0


class ScriptProgram:
    """Runs one script; what a driver runs is a ``yarnflow.runtime.driver.driver.RunningProgram``.

    Parameters
    ----------
    spark : SparkSession
        The driver's session.
    files : mapping of str to bytes
        The submission's files; ``.py`` and ``.zip`` ones reach the workers as well.
    argv : sequence of str
        Name of the program among the files, then its arguments.
    work_dir : Path
        Where the files are written; becomes the first entry of ``sys.path``.
    checkpoint_dir : str
        For queries that do not set a checkpoint location themselves.
    progress : ProgressCollector
        Knows which queries failed.
    job : JobIdentity
        Whose savepoints these are.
    fence : callable
        Called before each batch of a ``foreachBatch``; raises LeaseLost when this driver may not write.
    token : RunToken, optional
        The attempt of the job, for functions of ``foreachBatch`` that ask for it.
    preparation : Preparation
        Is told what the script asks for before it is given a context or a session.
    """

    def __init__(
        self,
        spark: Any,
        files: Mapping[str, bytes],
        argv: Sequence[str],
        work_dir: Path,
        checkpoint_dir: str,
        progress: ProgressCollector,
        *,
        job: JobIdentity | None = None,
        fence: Fence = no_fence,
        token: RunToken | None = None,
        preparation: Preparation | None = None,
    ) -> None:
        if not argv or argv[0] not in files:
            raise ProgramNotFound(f"program {argv[0] if argv else ''!r} is not among the submitted files")
        self._spark = spark
        self._files = dict(files)
        self._argv = tuple(argv)
        self._directory = work_dir / "program"
        self._checkpoint_dir = checkpoint_dir
        self._progress = progress
        self._preparation = preparation or NoPreparation()
        self._fence = fence
        self._token = token or RunToken(JobIdentity.nobody().job_id)
        self._stopped = threading.Event()
        self._canceled = threading.Event()
        self._queries = ScriptQueries(spark, self._prepare)
        job, job_dir = job or JobIdentity.nobody(), checkpoint_dir.rstrip("/")
        self._state = SavedState(
            functools.partial(HadoopFiles, spark), job_dir, place_of, fence, job.job_key
        )
        self._identities = QueryIdentities(CallPlaces(self._directory, self.path), job_dir, self._state)
        self._checkpoints = ScriptCheckpoints(
            spark,
            self._queries,
            self._identities,
            job,
            job_dir,
            fence,
            self._canceled,
        )
        self._lock = threading.Lock()
        self._main_begun = False
        self._main_runs = False
        self._main_ended = threading.Event()

    @property
    def path(self) -> Path:
        """The program's file in this driver."""
        return self._directory / self._argv[0]

    @property
    def compiles_on_executors(self) -> bool:
        """Nothing of a script does; its main begins when they are there."""
        return False

    def prepare(self) -> None:
        """Write the files and check the program's syntax."""
        root = self._directory.resolve()
        for name, content in self._files.items():
            target = (root / name).resolve()
            if not target.is_relative_to(root):
                raise InvalidOption(f"file name {name!r} of the submission leads out of the job's directory")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            if name != self._argv[0] and "/" not in name and name.endswith((".py", ".zip", ".egg")):
                self._spark.sparkContext.addPyFile(str(target))
        self._compile()
        self._progress.new_attempt()
        self._keep_checkpoints_of(self._spark)

    def start(self) -> None:
        """Nothing: main runs in :meth:`await_end`."""

    def await_end(self) -> None:
        """Run main here, in the main thread, then wait for the queries it left active.

        Returns as well when the job was stopped with a savepoint.

        Raises
        ------
        CheckpointFailed
            The job was to be stopped with a savepoint, and that could not be written.
        ProgramFailed
            Main raised or exited with a status other than 0; carries the user's traceback.
        YarnflowError
            A query failed.
        """
        code = self._compile()
        with self._lock:
            self._main_begun = True
        with (
            _program_environment(self._argv, self.path),
            kept_session(
                self._spark,
                self._queries,
                self._identities,
                self._fence,
                self._token,
                self._preparation,
            ),
        ):
            try:
                self._run_main(code)
                self._await_queries()
            except KeyboardInterrupt:
                if not self._stopped.is_set():
                    raise
            except Exception as error:
                # queries stopped under its feet make main raise what it likes
                if not self._stopped.is_set():
                    self._queries.stop()
                    damage = explained(error, self._checkpoint_dir, self._checkpoints.look_at_state)
                    if damage is None:
                        raise
                    raise damage from error
            finally:
                self._queries.stop()
                # of threads that main left behind
                self._cancel_jobs()
                # the job's directory may be gone once this returns
                self._checkpoints.end()
                self._state.leave()
        if self._checkpoints.failure is not None and not self._canceled.is_set():
            raise self._checkpoints.failure

    def stop(self) -> None:
        """Stop queries and jobs; interrupt main if it does not end by itself."""
        self._canceled.set()
        if not self._stopped.is_set():
            self._halt()

    def take_checkpoint(self, order: CheckpointOrder) -> CheckpointOutcome:
        """Carry an order out, and wait for it; any thread.

        After a savepoint with STOP :meth:`await_end` returns.

        Returns
        -------
        CheckpointOutcome
            With ``failure`` set if it could not be done.
        """
        return self._checkpoints.take(order, self._begin_to_stop, self._halt)

    def query_directory(self, query_id: str, name: str) -> str:
        """Where a query's checkpoint lies (a URI); empty when it has ended."""
        return self._checkpoints.directory_of(query_id)

    def _begin_to_stop(self) -> None:
        self._stopped.set()
        self._queries.refuse()

    def _halt(self) -> None:
        self._begin_to_stop()
        self._queries.stop()
        self._cancel_jobs()
        with self._lock:
            begun = self._main_begun
        if begun and not self._main_ended.wait(_GRACE_S):
            with self._lock:
                if self._main_runs:
                    # what Ctrl-C does in a terminal: ends sleeps and waits wherever main is
                    signal.pthread_kill(_main_thread_ident(), signal.SIGINT)

    def _prepare(self, session: Any) -> None:
        """A session that the script has made beside the driver's, before its first query starts."""
        listen(session, self._progress)
        self._keep_checkpoints_of(session)

    def _keep_checkpoints_of(self, session: Any) -> None:
        if self._checkpoint_dir and not session.conf.get(SESSION_LOCATION, None):
            session.conf.set(SESSION_LOCATION, self._checkpoint_dir)

    def _compile(self) -> types.CodeType:
        source = self._files[self._argv[0]]
        try:
            return compile(source, str(self.path), "exec", dont_inherit=True)
        except SyntaxError as error:
            place = f"{self._argv[0]}, line {error.lineno}"
            raise ProgramSyntaxError(f"{place}: {error.msg}; correct the program and submit again") from error
        except ValueError as error:
            raise ProgramSyntaxError(f"{self._argv[0]} is not a Python program: {error}") from error

    def _run_main(self, code: types.CodeType) -> None:
        # stays in sys.modules: functions of running queries still look their globals up in it
        module = types.ModuleType("__main__")
        module.__file__ = str(self.path)
        module.__builtins__ = __builtins__  # type: ignore[attr-defined]
        sys.modules["__main__"] = module
        if self._stopped.is_set():
            self._main_ended.set()
            return
        try:
            if isinstance(sys.stdout, io.TextIOWrapper):
                # what the JVM prints goes there beside it, and would come first
                sys.stdout.reconfigure(line_buffering=True)
            with _interruptible():
                with self._lock:
                    self._main_runs = True
                exec(code, module.__dict__)
        except SystemExit as exit_request:
            _check_exit(exit_request.code, self._argv[0])
        except KeyboardInterrupt:
            raise
        except Exception as error:
            raise self._main_failure(error) from error
        finally:
            with self._lock:
                self._main_runs = False
            self._main_ended.set()
            _flush_output()

    def _main_failure(self, error: Exception) -> YarnflowError:
        if isinstance(error, YarnflowError):
            return error
        found = user_traceback_of(error, below=str(self.path))
        if not _from_spark(error):
            return ProgramFailed(found.summary, found.text)
        mapped = map_spark_error(error)
        if isinstance(mapped, UserCodeError) or not found.file:
            return mapped
        return type(mapped)(f"{mapped.message} (at {Path(found.file).name}:{found.line})")

    def _await_queries(self) -> None:
        while not self._stopped.is_set():
            active = self._active_queries()
            if not active:
                break
            for query in active:
                try:
                    query.awaitTermination(_POLL_S)
                except Exception as error:
                    if self._stopped.is_set():
                        return
                    raise map_spark_error(error) from error
        if self._stopped.is_set():
            return
        # the failure of a query that nobody awaited arrives by the listener, a moment later
        try:
            self._spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(5000)
        except Exception as error:
            logger.info("Spark's listener bus did not run empty: %s", error)
        for query_id, text in self._progress.failures().items():
            logger.info("Query %s failed: %s", query_id, text)
            raise map_texts([text])

    def _active_queries(self) -> list[Any]:
        try:
            return self._queries.active()
        except Exception as error:
            raise map_spark_error(error) from error

    def _cancel_jobs(self) -> None:
        try:
            self._spark.sparkContext.cancelAllJobs()
        except Exception as error:
            logger.info("Spark's jobs could not be canceled: %s", error)


def _check_exit(code: object, program: str) -> None:
    if code is None or code == 0:
        return
    if isinstance(code, int):
        raise ProgramFailed(f"{program} exited with status {code}")
    raise ProgramFailed(f"{program} exited: {code}")


def _from_spark(error: BaseException) -> bool:
    return type(error).__module__.startswith(("pyspark.", "py4j."))


def _main_thread_ident() -> int:
    ident = threading.main_thread().ident
    assert ident is not None
    return ident


def _flush_output() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, as in any program, whatever the driver does with it otherwise."""
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL if old is None else old)


@contextmanager
def _program_environment(argv: Sequence[str], path: Path) -> Iterator[None]:
    """What the Python interpreter sets for a program it runs."""
    old_argv, old_path, old_main = sys.argv, list(sys.path), sys.modules["__main__"]
    sys.argv = [str(path), *argv[1:]]
    sys.path.insert(0, str(path.parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = old_argv, old_path
        sys.modules["__main__"] = old_main
