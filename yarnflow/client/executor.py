"""From a job graph or a script to a job on a cluster.

Flink counterpart: ``PipelineExecutor`` (attached and detached) and the context environment that
``flink run`` installs for the user's program.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from yarnflow.client.cluster import ClusterConnection, JobListener
from yarnflow.client.job_client import ClusterJobClient
from yarnflow.client.program import Program
from yarnflow.config.configuration import Configuration
from yarnflow.config.option import Scope
from yarnflow.config.options import OPTIONS_BY_KEY, PASSED_THROUGH
from yarnflow.core.ids import JobId, VertexId
from yarnflow.core.messages import JobSubmission, ProgramKind
from yarnflow.errors import ProgramNotFound, YarnflowError
from yarnflow.graph.codec import job_graph_to_json
from yarnflow.graph.job_graph import JobGraph, JobVertex

SCRIPT_VERTEX_NAME: Final = "PySpark script"
DEFAULT_MAX_PARALLELISM: Final = 128


def new_job_id() -> JobId:
    """A random job id: 32 hexadecimal digits."""
    return JobId(secrets.token_hex(16))


def script_submission(
    program: Program,
    *,
    configuration: Mapping[str, str],
    parallelism: int,
    name: str = "",
    job_key: str = "",
    files: Sequence[str] = (),
) -> JobSubmission:
    """A submission of an unmodified PySpark script.

    Parameters
    ----------
    parallelism : int
        Task slots the script's executors get.
    files : sequence of str
        Further Python files and archives, shipped with it (``-pyfs``).
    """
    shipped = {program.name: program.content}
    for path in files:
        file = Path(path)
        if file.name in shipped:
            raise ProgramNotFound(f"two files called {file.name} cannot be shipped together; rename one")
        try:
            shipped[file.name] = file.read_bytes()
        except OSError as error:
            raise ProgramNotFound(f"file {path} (-pyfs) cannot be read: {error.strerror}") from error
    job_id = new_job_id()
    title = name or Path(program.name).stem
    vertex_id = VertexId(hashlib.md5(program.name.encode(), usedforsecurity=False).hexdigest())
    graph = JobGraph(
        job_id=job_id,
        name=title,
        kind=ProgramKind.SCRIPT,
        vertices=(
            JobVertex(
                vertex_id=vertex_id,
                name=SCRIPT_VERTEX_NAME,
                chain=(),
                parallelism=parallelism,
                max_parallelism=max(parallelism, DEFAULT_MAX_PARALLELISM),
                slot_sharing_group="default",
            ),
        ),
    )
    return JobSubmission(
        job_id=job_id,
        name=title,
        kind=ProgramKind.SCRIPT,
        job_graph_json=job_graph_to_json(graph),
        configuration=dict(configuration),
        job_key=job_key,
        files=shipped,
        script_argv=(program.name, *program.arguments),
    )


def graph_submission(
    graph: JobGraph, *, configuration: Mapping[str, str], job_key: str = ""
) -> JobSubmission:
    """A submission of a job graph; options set in the program win over those of the command."""
    return JobSubmission(
        job_id=graph.job_id,
        name=graph.name,
        kind=ProgramKind.GRAPH,
        job_graph_json=job_graph_to_json(graph),
        configuration={**configuration, **graph.configuration},
        job_key=job_key,
    )


def shipped_options(configuration: Configuration) -> dict[str, str]:
    """The options that go with a job: its own and Spark's.

    Those of the client end here, and those of the cluster are what its own processes were started
    with; a client's idea of them must not reach a driver.
    """
    return {
        key: value
        for key, value in configuration.to_dict().items()
        if key.startswith(PASSED_THROUGH) or (OPTIONS_BY_KEY[key].scope is Scope.JOB)
    }


class ClusterExecutor:
    """Submits what the program executes and keeps track of it.

    Parameters
    ----------
    connection : ClusterConnection
        Where jobs go.
    configuration : mapping
        Options that go with every job, key → text; see :func:`shipped_options`.
    listener : JobListener
        Shows the jobs' lives.
    attached : bool
        Whether ``execute`` in the program waits for the end of the job.
    job_key : str
        For the program's (only) job.
    timeout_ms : int
        ``client.timeout``.
    """

    def __init__(
        self,
        connection: ClusterConnection,
        configuration: Mapping[str, str],
        listener: JobListener,
        *,
        attached: bool = True,
        job_key: str = "",
        timeout_ms: int = 60_000,
    ) -> None:
        self._connection = connection
        self._configuration = dict(configuration)
        self._listener = listener
        self._attached = attached
        self._job_key = job_key
        self._timeout_ms = timeout_ms
        self.clients: list[ClusterJobClient] = []

    def submit(self, job_graph: JobGraph) -> ClusterJobClient:
        """Hand a job graph over; returns when the cluster has accepted it."""
        return self.submit_job(
            graph_submission(job_graph, configuration=self._configuration, job_key=self._job_key),
            job_graph.required_slots(),
        )

    def submit_job(self, submission: JobSubmission, required_slots: int) -> ClusterJobClient:
        """Hand any job over; returns when the cluster has accepted it."""
        self._connection.provide(required_slots)
        answer = self._connection.gateway().submit_job(submission)
        client = ClusterJobClient(
            self._connection,
            answer.job_id,
            submission.name,
            self._listener,
            attached=self._attached,
            timeout_ms=self._timeout_ms,
        )
        self.clients.append(client)
        self._listener.submitted(answer.job_id, submission.name, answer.attached_to_existing)
        return client

    def await_all(self) -> None:
        """Wait for every job nobody waited for; raise the first that did not FINISH.

        A program may catch the error of a failed job, but the command still fails.
        """
        first: YarnflowError | None = None
        for client in self.clients:
            try:
                client.await_result()
            except YarnflowError as error:
                first = first or error
        if first is not None:
            raise first
