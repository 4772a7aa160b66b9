"""Runs the jobs of a program that no command runs: ``python job.py``, a test, a notebook.

The first job starts a local cluster in this process, with the options that ``yarnflow submit
--target local`` would have.  It stays for the next jobs and ends with the interpreter, however that
ends.  What ``submit`` shows is logged here, and signals are the program's own.  Found by
:mod:`yarnflow.api.executor` as an entry point.  PyFlink counterpart: the ``MiniCluster`` that
``python job.py`` runs in.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from yarnflow.api.executor import SubmittedJob
from yarnflow.cli.common import with_target
from yarnflow.cli.configuration import load_configuration
from yarnflow.cli.restore_options import with_state
from yarnflow.cli.targets import LOCAL
from yarnflow.cli.view import OutputPump, StateLines, submitted_lines
from yarnflow.client.cluster import NO_PAGE, Page
from yarnflow.client.executor import ClusterExecutor
from yarnflow.client.job_client import ClusterJobClient
from yarnflow.client.programs.job_key import ProgramIdentity
from yarnflow.config.options import client
from yarnflow.core.ids import JobId
from yarnflow.core.messages import ClusterOverview, JobDetails
from yarnflow.core.states import JobStatus
from yarnflow.entrypoint.standalone.local import LocalCluster
from yarnflow.errors import ProgramError, YarnflowError
from yarnflow.graph.job_graph import JobGraph
from yarnflow.process.logs import LOG_FILE_ENVIRONMENT

logger: Final = logging.getLogger(__name__)


class LoggedJobs:
    """A listener that logs: failures as warnings, states as information.

    Parameters
    ----------
    output : OutputPump
        Carries what the jobs print; when the end of a job is seen all of that stands there.
    """

    def __init__(self, output: OutputPump) -> None:
        self._output = output
        self._lines = StateLines()

    def submitted(self, job_id: JobId, name: str, attached_to_existing: bool, page: Page = NO_PAGE) -> None:
        for line in submitted_lines(job_id, name, attached_to_existing, page.address):
            logger.info("%s", line)

    def changed(self, details: JobDetails, overview: ClusterOverview | None) -> None:
        for line in self._lines.failures(details):
            logger.warning("%s", line)
        for line in self._lines.states(details):
            logger.info("%s", line)
        if details.overview.status.terminal:
            self._output.drain()

    def note(self, text: str) -> None:
        logger.warning("%s", text)


@dataclass(frozen=True, slots=True)
class _Running:
    cluster: LocalCluster
    executor: ClusterExecutor
    output: OutputPump


class EmbeddedExecutor:
    """A :class:`yarnflow.api.executor.ProcessExecutor`; thread-safe.

    Raises
    ------
    ConfigError
        The options of the configuration directory or the environment are wrong.
    """

    def __init__(self) -> None:
        # attached: a cluster that ends with this process leaves nothing to come back to
        self._configuration = with_target(load_configuration(None, ()), LOCAL.name, None).with_values(
            {client.ATTACHED.key: "true"}, source="the program's process"
        )
        for note in self._configuration.notes:
            logger.warning("%s", note)
        self._lock = threading.Lock()
        self._running: _Running | None = None
        os.register_at_fork(after_in_child=self._forget)

    @property
    def configuration(self) -> Mapping[str, str]:
        """Options of the configuration directory and the environment, key → text."""
        return self._configuration.to_dict()

    @property
    def default_parallelism(self) -> int:
        """One subtask for each processor, as in Flink's ``LocalStreamEnvironment``."""
        return os.cpu_count() or 1

    def submit(self, job_graph: JobGraph) -> SubmittedJob:
        """Hand a job graph over, to a new cluster if there is none or the last one has failed.

        Raises
        ------
        ProgramError
            This process is part of a cluster.
        YarnflowError
            The cluster does not start, or refuses the job.
        """
        try:
            return self._started().executor.submit(job_graph)
        except KeyboardInterrupt:
            # nobody knows whether the job was accepted
            self.close()
            raise

    def close(self) -> None:
        """End the cluster with all its jobs.  Idempotent."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            _end(running)

    def _started(self) -> _Running:
        with self._lock:
            running = self._running
            if running is not None and running.cluster.failure() is not None:
                # first forgotten: what ends it or starts the next may fail
                self._running = None
                _end(running)
                running = None
            if running is None:
                running = self._start()
                atexit.unregister(self.close)
                atexit.register(self.close)
            self._running = running
            return running

    def _start(self) -> _Running:
        if LOG_FILE_ENVIRONMENT in os.environ:
            raise ProgramError(
                "execute() was called in a process of a cluster, which would start another one; "
                "call it in the program itself"
            )
        configuration, check_graph = with_state(self._configuration, LOCAL.name)
        output = OutputPump()
        try:
            cluster = LocalCluster.start(configuration, driver_stdout_fd=output.write_fd, several_jobs=True)
        except BaseException:
            output.close()
            raise
        executor = ClusterExecutor.configured(
            cluster, configuration, LoggedJobs(output), check_graph, ProgramIdentity.of_this_process()
        )
        return _Running(cluster, executor, output)

    def _forget(self) -> None:
        """A forked copy of this process starts a cluster of its own."""
        self._lock = threading.Lock()
        self._running = None


def _end(running: _Running) -> None:
    clients = running.executor.clients
    for name in _left_running(clients):
        logger.warning("Job %s ends with its cluster; to wait for it call get_job_execution_result().", name)
    # logs are for whoever did not expect the failure: an error that nobody caught has ended the program
    failed = getattr(sys, "last_value", None) is not None and any(_has_failed(client) for client in clients)
    kept = running.cluster.stop(forced=True, failed=failed)
    running.output.close()
    if kept:
        logger.warning("Logs are in %s", kept)


def _left_running(clients: Sequence[ClusterJobClient]) -> Iterator[str]:
    for job_client in clients:
        try:
            if job_client.ended is None and not job_client.status().terminal:
                yield job_client.name
        except YarnflowError:
            return  # the cluster has ended already


def _has_failed(job_client: ClusterJobClient) -> bool:
    ended = job_client.ended
    return ended is not None and ended.overview.status is JobStatus.FAILED
