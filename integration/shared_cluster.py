"""One standalone cluster for all tests of a worker that need some cluster, and do not care which.

A driver whose job has finished waits there for the next job with the same options, and so do its executors:
tests share these JVMs, too.  A test may kill what it likes, as the next one gets another cluster then; it
must not leave a job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from integration.conftest import KEEP_DRIVER, Commands, Started, commands_in, wait_until
from integration.rest.client import Rest, Served
from yarnflow.api.executor import use_executor
from yarnflow.cli.common import with_target
from yarnflow.cli.configuration import load_configuration
from yarnflow.client.cluster import SilentListener
from yarnflow.client.executor import ClusterExecutor
from yarnflow.client.targets import REMOTE

#: of its TaskManager
SLOTS: Final = 6
_OPTIONS: Final = (
    KEEP_DRIVER,
    "-Djobmanager.rpc.port=0",
    "-Dmetrics.fetcher.update-interval=1 s",
    "-Drest.bind-port=0",
    f"-Dtaskmanager.numberOfTaskSlots={SLOTS}",
    "-Dweb.submit.timeout=3 min",
)


@dataclass(frozen=True)
class SharedCluster:
    """A cluster that runs, and how commands, programs and clients of its REST interface reach it."""

    commands: Commands
    job_manager: Started
    task_manager: Started
    #: ``host:port``
    address: str
    #: may write
    rest: Rest
    #: of the client that may only read
    read_token: str

    @classmethod
    def start(cls, commands: Commands) -> SharedCluster:
        """Start JobManager and TaskManager, and wait for its slots."""
        directory = commands.directory
        options = [*_OPTIONS, f"-Dio.tmp.dirs={directory}"]
        job_manager = commands.start("jobmanager", *options)

        def serving() -> Served | None:
            assert job_manager.process.poll() is None, job_manager.stderr
            return Served.below(directory)

        served = wait_until(serving, "the JobManager to serve")
        task_manager = commands.start("taskmanager", *options)
        cluster = cls(
            commands, job_manager, task_manager, served.address, served.rest, served.read_token
        )
        wait_until(lambda: cluster.works, "the TaskManager's slots")
        return cluster

    @property
    def mark(self) -> str:
        """Mark of all of its processes, see :func:`integration.conftest.marked_processes`."""
        return self.commands.mark

    @property
    def options(self) -> tuple[str, ...]:
        """Options with which a command finds it."""
        return ("-m", self.address, f"-Dio.tmp.dirs={self.commands.directory}")

    @property
    def works(self) -> bool:
        """Return whether its processes run, and have all slots."""
        if any(started.process.poll() is not None for started in (self.job_manager, self.task_manager)):
            return False
        try:
            return bool(self.rest.get("/overview")["slots-total"] == SLOTS)
        except OSError:
            return False

    def live_jobs(self) -> dict[str, str]:
        """Return the jobs that have not ended, id → name."""
        jobs = self.rest.get("/jobs/overview")["jobs"]
        return {each["jid"]: each["name"] for each in jobs if each["end-time"] < 0}

    def cancel(self, job_id: str) -> None:
        """Cancel a job and wait for its end."""
        self.rest.ask("PATCH", f"/jobs/{job_id}")
        self.rest.await_state(job_id, "CANCELED", "FAILED", "FINISHED")

    @contextmanager
    def programs(self) -> Iterator[None]:
        """Have the jobs of programs that run in this process submitted here."""
        options = (f"io.tmp.dirs={self.commands.directory}",)
        configuration = with_target(load_configuration(None, options), None, self.address)
        connection = REMOTE.connect(configuration)
        executor = ClusterExecutor.configured(connection, configuration, SilentListener())
        try:
            with use_executor(executor, configuration.to_dict()):
                yield
        finally:
            connection.stop(forced=False, failed=False)


class ClusterKeeper:
    """Starts the cluster when it is first needed, and another one when it is broken.

    Parameters
    ----------
    make_directory : callable
        Makes a directory for each cluster.
    start : callable
        Starts one with commands that run there.
    """

    def __init__(
        self,
        make_directory: Callable[[], Path],
        start: Callable[[Commands], SharedCluster] = SharedCluster.start,
    ) -> None:
        self._make_directory = make_directory
        self._start = start
        self._processes = ExitStack()
        self._running: SharedCluster | None = None

    @contextmanager
    def lent(self) -> Iterator[SharedCluster]:
        """Lend the cluster to a test, or to the fixture of several.

        Raises
        ------
        AssertionError
            Jobs were left, which have been canceled; or processes by a cluster that was broken meanwhile.
        """
        cluster = self._started()
        try:
            yield cluster
        finally:
            left = {}
            if cluster.works:
                left = cluster.live_jobs()
                for job_id in left:
                    cluster.cancel(job_id)
            else:
                self.end()
        assert not left, f"jobs were left on the shared cluster: {left}"

    def end(self) -> None:
        """End the cluster, if one runs; none of its processes is left."""
        self._running = None
        self._processes.close()

    def _started(self) -> SharedCluster:
        """Return the cluster that works, a new one where there is none."""
        if self._running is not None and not self._running.works:
            self.end()
        if self._running is None:
            commands = self._processes.enter_context(commands_in(self._make_directory()))
            try:
                self._running = self._start(commands)
            except BaseException:
                self.end()
                raise
        return self._running
