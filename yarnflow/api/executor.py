"""How a program's jobs leave it.

Decides nothing about clusters: whoever runs the program (``yarnflow submit``) installs an
executor, and what waiting for a job means is that executor's business.  Flink counterparts:
``PipelineExecutor``, ``JobClient``, ``JobExecutionResult``, ``ProgramAbortException``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from yarnflow.core.ids import JobId
from yarnflow.core.states import JobStatus
from yarnflow.errors import ProgramError
from yarnflow.graph.job_graph import JobGraph


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


class JobClient(Protocol):
    """A submitted job."""

    @property
    def job_id(self) -> JobId:
        """Id of the job: 32 hexadecimal digits."""

    def get_job_status(self) -> JobStatus:
        """The job's state now."""

    def cancel(self) -> None:
        """Begin to cancel the job."""

    def get_job_execution_result(self) -> JobExecutionResult:
        """Wait for the end.  Raises UserCodeError, JobFailed, JobCanceled if it is no good one."""


class PipelineExecutor(Protocol):
    """Takes job graphs to where they run."""

    def submit(self, job_graph: JobGraph) -> JobClient:
        """Hand the job over; returns when it was accepted."""


class ProgramAborted(BaseException):
    """Ends the program at its first ``execute``; not an Exception, so that no program catches it."""


@dataclass(slots=True)
class GraphCollector:
    """An executor that keeps the job graph and ends the program: ``yarnflow info``.

    A program may read results after ``execute``, so it cannot go on without a run.
    """

    graphs: list[JobGraph] = field(default_factory=list)

    def submit(self, job_graph: JobGraph) -> JobClient:
        """Keep the graph.  Raises ProgramAborted."""
        self.graphs.append(job_graph)
        raise ProgramAborted


@dataclass(slots=True)
class _Installed:
    executor: PipelineExecutor | None = None
    #: options of the command and the cluster, key → text
    configuration: Mapping[str, str] = field(default_factory=dict)


_installed = _Installed()


def set_executor(executor: PipelineExecutor | None, configuration: Mapping[str, str] | None = None) -> None:
    """Install the executor of this process.

    Parameters
    ----------
    executor : PipelineExecutor or None
        None: programs cannot execute.
    configuration : mapping, optional
        Options around the program, key → text; those set in the program win over them.
    """
    _installed.executor = executor
    _installed.configuration = dict(configuration or {})


@contextmanager
def use_executor(
    executor: PipelineExecutor, configuration: Mapping[str, str] | None = None
) -> Iterator[None]:
    """:func:`set_executor` for a while."""
    before = _installed.executor, _installed.configuration
    set_executor(executor, configuration)
    try:
        yield
    finally:
        _installed.executor, _installed.configuration = before


def current_executor() -> PipelineExecutor:
    """The installed executor.  Raises ProgramError when there is none."""
    if _installed.executor is None:
        raise ProgramError("nothing here can run the job; run the program by: yarnflow submit PROGRAM")
    return _installed.executor


def surrounding_configuration() -> Mapping[str, str]:
    """Options around the program, key → text."""
    return _installed.configuration
