"""How a program's jobs leave it.

Decides nothing about clusters: whoever runs the program (``yarnflow submit``) installs an
executor, and what waiting for a job means is that executor's business.  A program that nobody runs
(``python job.py``, a test, a notebook) finds one among the entry points of the installed packages,
as nothing here may know who can start clusters.  Flink counterparts: ``PipelineExecutor``,
``PipelineExecutorServiceLoader``, ``JobClient``, ``JobExecutionResult``, ``ProgramAbortException``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Protocol

from yarnflow.core.ids import JobId
from yarnflow.core.states import JobStatus
from yarnflow.errors import ProgramError
from yarnflow.graph.compatibility import same_and
from yarnflow.graph.job_graph import JobGraph

NO_ACCUMULATORS: Final = "there are no accumulators"
NO_PYTHON_ACCUMULATORS: Final = "no Python function has accumulators; metrics are for that"
METRICS: Final = "metrics: get_metrics_group() of the runtime context"


@dataclass(frozen=True, slots=True)
class JobExecutionResult:
    """The end of a job."""

    job_id: JobId
    #: from RUNNING to the end; -1 when nobody waited for the end
    net_runtime_ms: int

    def get_job_id(self) -> JobId:
        """PyFlink's name for :attr:`job_id`."""
        return self.job_id

    def get_net_runtime(self) -> int:
        """PyFlink's name for :attr:`net_runtime_ms`."""
        return self.net_runtime_ms

    @same_and(NO_PYTHON_ACCUMULATORS)
    def get_accumulator_result(self, accumulator_name: str) -> Any:
        """The value of an accumulator; None: no job has one."""
        return None

    @same_and(NO_PYTHON_ACCUMULATORS)
    def get_all_accumulator_results(self) -> dict[str, Any]:
        """Nothing."""
        return {}


class SubmittedJob(Protocol):
    """A submitted job, as its executor knows it."""

    @property
    def job_id(self) -> JobId:
        """Id of the job: 32 hexadecimal digits."""

    def get_job_status(self) -> JobStatus:
        """The job's state now."""

    def cancel(self) -> None:
        """Begin to cancel the job."""

    def begin_savepoint(
        self, target_dir: str, *, stop: bool = False, drain: bool = False
    ) -> Callable[[], str]:
        """Ask for a savepoint; what is returned waits for its path.  That raises CheckpointError."""

    def get_job_execution_result(self) -> JobExecutionResult:
        """Wait for the end.  Raises UserCodeError, JobFailed, JobCanceled if it is no good one."""


class ElementIterator(Iterator[Any], Protocol):
    """Elements of a job."""

    def close(self) -> None:
        """Cancel the job if it has not ended.  Idempotent."""


class CollectingJob(SubmittedJob, Protocol):
    """A submitted job whose elements come back to the program."""

    def collected(self) -> ElementIterator:
        """The elements of the job's CollectSink, each once, as they come.

        Ends with the job, and raises its error: UserCodeError, JobFailed, JobCanceled …
        """


class PipelineExecutor(Protocol):
    """Takes job graphs to where they run."""

    def submit(self, job_graph: JobGraph) -> SubmittedJob:
        """Hand the job over; returns when it was accepted."""


class ProcessExecutor(PipelineExecutor, Protocol):
    """An executor that a program finds by itself: its cluster lives as long as this process.

    To make one is cheap; whatever it needs is started by its first job.
    """

    @property
    def configuration(self) -> Mapping[str, str]:
        """Options around the program, key → text."""

    @property
    def default_parallelism(self) -> int:
        """Parallelism of jobs where neither these options nor the program say one."""

    def close(self) -> None:
        """End what was started; the next job starts it again.  Idempotent."""


#: entry points of this group name callables without arguments that make a :class:`ProcessExecutor`
EXECUTOR_GROUP: Final = "yarnflow.executors"


class ProgramAborted(BaseException):
    """Ends the program at its first ``execute``; not an Exception, so that no program catches it."""


@dataclass(slots=True)
class GraphCollector:
    """An executor that keeps the job graph and ends the program: ``yarnflow info``.

    A program may read results after ``execute``, so it cannot go on without a run.
    """

    graphs: list[JobGraph] = field(default_factory=list)

    def submit(self, job_graph: JobGraph) -> SubmittedJob:
        """Keep the graph.  Raises ProgramAborted."""
        self.graphs.append(job_graph)
        raise ProgramAborted


@dataclass(slots=True)
class _Installed:
    executor: PipelineExecutor | None = None
    #: options of the command and the cluster, key → text
    configuration: Mapping[str, str] = field(default_factory=dict)
    default_parallelism: int | None = None
    #: the one that was found where none is installed
    found: ProcessExecutor | None = None


_installed = _Installed()
_find_lock = threading.Lock()


def set_executor(
    executor: PipelineExecutor | None,
    configuration: Mapping[str, str] | None = None,
    default_parallelism: int | None = None,
) -> None:
    """Install the executor of this process.

    Parameters
    ----------
    executor : PipelineExecutor or None
        None: programs find one by themselves.
    configuration : mapping, optional
        Options around the program, key → text; those set in the program win over them.
    default_parallelism : int, optional
        Parallelism of jobs where neither these options nor the program say one; None = the option's default.
    """
    _installed.executor = executor
    _installed.configuration = dict(configuration or {})
    _installed.default_parallelism = default_parallelism


@contextmanager
def use_executor(
    executor: PipelineExecutor,
    configuration: Mapping[str, str] | None = None,
    default_parallelism: int | None = None,
) -> Iterator[None]:
    """:func:`set_executor` for a while."""
    before = _installed.executor, _installed.configuration, _installed.default_parallelism
    set_executor(executor, configuration, default_parallelism)
    try:
        yield
    finally:
        set_executor(*before)


def current_executor() -> PipelineExecutor:
    """The installed executor, else the one of this process.

    Raises
    ------
    ProgramError
        There is none, or more than one.
    ConfigError
        The options around the program are wrong.
    """
    executor = _installed.executor or _found()
    if executor is None:
        raise ProgramError(
            f"nothing here can run the job: no installed package declares an entry point {EXECUTOR_GROUP}; "
            "install yarnflow again, or run the program by: yarnflow submit PROGRAM"
        )
    return executor


def surrounding_configuration() -> Mapping[str, str]:
    """Options around the program, key → text.  Raises as :func:`current_executor`, but not without one."""
    if _installed.executor is not None:
        return _installed.configuration
    found = _found()
    return {} if found is None else found.configuration


def surrounding_parallelism() -> int | None:
    """Parallelism of jobs where nothing says one; None = the option's default.  Raises as the above."""
    if _installed.executor is not None:
        return _installed.default_parallelism
    found = _found()
    return None if found is None else found.default_parallelism


def close_cluster() -> None:
    """End the cluster that the first ``execute`` of this process has started; the next starts another one.

    Does nothing where a command runs the program.  Without it the cluster ends with the interpreter.
    """
    with _find_lock:
        found = _installed.found
    if found is not None:
        found.close()


def _found() -> ProcessExecutor | None:
    with _find_lock:
        if _installed.found is None:
            make = _executor_entry_point()
            if make is not None:
                _installed.found = make()
        return _installed.found


@cache
def _executor_entry_point() -> Callable[[], ProcessExecutor] | None:
    # here: only programs that nobody runs pay for it
    from importlib.metadata import entry_points

    # one package may be seen twice, as installed and in the working directory
    entries = {entry.value: entry for entry in entry_points(group=EXECUTOR_GROUP)}
    if len(entries) > 1:
        raise ProgramError(
            f"several packages declare an entry point {EXECUTOR_GROUP} ({', '.join(sorted(entries))}); "
            "uninstall all but one, or run the program by: yarnflow submit PROGRAM"
        )
    for entry in entries.values():
        make: Callable[[], ProcessExecutor] = entry.load()
        return make
    return None
