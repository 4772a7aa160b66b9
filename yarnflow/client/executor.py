"""From a job graph or a script to a job on a cluster.

Flink counterpart: ``PipelineExecutor`` (attached and detached) and the context environment that
``flink run`` installs for the user's program.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from yarnflow.client.cluster import ClusterConnection, JobListener, page_of
from yarnflow.client.jars.bring import JarBringer
from yarnflow.client.jars.script_options import jar_options
from yarnflow.client.job_client import ClusterJobClient, job_command
from yarnflow.client.programs.job_key import JobKeyChoice, ProgramIdentity
from yarnflow.client.programs.program import Program
from yarnflow.config.configuration import Configuration
from yarnflow.config.option import Scope
from yarnflow.config.options import ALL_OPTIONS, PASSED_THROUGH, job
from yarnflow.config.options import client as client_options
from yarnflow.core.ids import JobId, VertexId
from yarnflow.core.jars.request import layered
from yarnflow.core.messages import JobSubmission, JobSubmitted, ProgramKind
from yarnflow.errors import DuplicateJob, HaError, JobError, ProgramNotFound, RpcError, YarnflowError
from yarnflow.graph.codec import job_graph_to_json
from yarnflow.graph.growing_state import growing_state
from yarnflow.graph.job_graph import JobGraph, JobVertex

SCRIPT_VERTEX_NAME: Final = "PySpark script"
DEFAULT_MAX_PARALLELISM: Final = 128
#: between two attempts to replace a job
_RETRY_S: Final = 0.2


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
    graph: JobGraph,
    *,
    configuration: Mapping[str, str],
    job_key: str = "",
    files: Mapping[str, bytes] | None = None,
) -> JobSubmission:
    """A submission of a job graph; options and files set in the program win over those of the command.

    Jars and packages are those of both.
    """
    return JobSubmission(
        job_id=graph.job_id,
        name=graph.name,
        kind=ProgramKind.GRAPH,
        job_graph_json=job_graph_to_json(graph),
        configuration=layered(configuration, graph.configuration),
        job_key=job_key,
        files={**(files or {}), **graph.files},
    )


def shipped_options(configuration: Configuration) -> dict[str, str]:
    """The options that go with a job: its own and Spark's.

    Those of the client end here, and those of the cluster are what its own processes were started
    with; a client's idea of them must not reach a driver.
    """
    of_jobs = {option.key for option in ALL_OPTIONS if option.scope is Scope.JOB}
    return {
        key: value
        for key, value in configuration.to_dict().items()
        if key.startswith(PASSED_THROUGH) or key in of_jobs
    }


def _stage(configuration: Configuration) -> Callable[[Mapping[str, str]], dict[str, str]]:
    if not os.environ.get("CONTAINER_ID"):
        # the target does it, where there is need
        return dict

    def stage(options: Mapping[str, str]) -> dict[str, str]:
        from yarnflow.client.yarn.shipping import stage_from_container

        return stage_from_container(options, configuration)

    return stage


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
    keys : JobKeyChoice, optional
        Keys of the program's jobs; default: they have none.
    on_existing : str
        ``client.on-existing``: attach, fail or replace.
    cancel_on_interrupt : bool
        An interrupt cancels the job although its cluster outlives the command.
    timeout_ms : int
        ``client.timeout``.
    check_graph : callable, optional
        Raises an error for a job graph that is not to be handed over.
    on_hadoop : bool
        Directories for savepoints that are named without a scheme are on the cluster's default file system.
    stage : callable, optional
        Makes the jars of this process's machine, which are among a job's options, readable for the cluster.
    """

    def __init__(
        self,
        connection: ClusterConnection,
        configuration: Mapping[str, str],
        listener: JobListener,
        *,
        attached: bool = True,
        keys: JobKeyChoice | None = None,
        on_existing: str = "attach",
        cancel_on_interrupt: bool = False,
        timeout_ms: int = 60_000,
        check_graph: Callable[[JobGraph], None] | None = None,
        on_hadoop: bool = False,
        stage: Callable[[Mapping[str, str]], dict[str, str]] = dict,
    ) -> None:
        self._on_hadoop = on_hadoop
        self._stage = stage
        self._connection = connection
        self._check_graph = check_graph
        self._configuration = dict(configuration)
        self._listener = listener
        self._attached = attached
        self.keys = keys or JobKeyChoice()
        self._on_existing = on_existing
        self._cancel_on_interrupt = cancel_on_interrupt
        self._timeout_ms = timeout_ms
        self._replaced: set[JobId] = set()
        self._python_files: dict[str, bytes] = {}
        self._jars = JarBringer(listener.note)
        self.clients: list[ClusterJobClient] = []

    @classmethod
    def configured(
        cls,
        connection: ClusterConnection,
        configuration: Configuration,
        listener: JobListener,
        check_graph: Callable[[JobGraph], None] | None = None,
        program: ProgramIdentity | None = None,
    ) -> ClusterExecutor:
        """Return one for a connection of this configuration.

        Jobs of a known program have keys of their own where the cluster outlives the command.
        """
        return cls(
            connection,
            shipped_options(configuration),
            listener,
            attached=configuration.get(client_options.ATTACHED),
            keys=JobKeyChoice(configuration.get(job.JOB_KEY), program, by_default=not connection.owned),
            on_existing=configuration.get(client_options.ON_EXISTING),
            cancel_on_interrupt=configuration.get(client_options.SHUTDOWN_ON_ATTACHED_EXIT),
            timeout_ms=configuration.get(client_options.CLIENT_TIMEOUT_MS),
            check_graph=check_graph,
            on_hadoop=configuration.get(client_options.TARGET).startswith("yarn-"),
            stage=_stage(configuration),
        )

    def submit(self, job_graph: JobGraph) -> ClusterJobClient:
        """Hand a job graph over; returns when the cluster has accepted it.

        Raises
        ------
        DuplicateJob
            A live job has its key, and it was to fail then.
        JarError
            A jar or package that it needs cannot be had.
        """
        from yarnflow.api.building.shipped import check_size

        if self._check_graph is not None:
            self._check_graph(job_graph)
        for growing in growing_state(job_graph):
            self._listener.note(f"WARNING: {growing}")
        submission = graph_submission(
            job_graph, configuration=self._configuration, files=self._python_files
        )
        check_size(submission.files, f"job '{job_graph.name}'")
        configuration = self._jars.bring(submission.configuration, job_graph.connectors)
        return self._submit(replace(submission, configuration=configuration), job_graph.required_slots())

    def submit_script(self, submission: JobSubmission, required_slots: int) -> ClusterJobClient:
        """Hand a script over, with the jars it asks for in its text as well; raises as :meth:`submit`."""
        own_options = jar_options(submission.files[submission.script_argv[0]])
        configuration = self._jars.bring(submission.configuration, own_options=own_options)
        return self._submit(replace(submission, configuration=configuration), required_slots)

    def ship_python_files(self, paths: Sequence[str]) -> None:
        """Have the functions of all jobs find modules (``-pyfs``), which the program itself may not import.

        Raises
        ------
        GraphError
            One cannot be read, two have one name, or they are too large for a submission.
        """
        # here: scripts need nothing of the API
        from yarnflow.api.building.shipped import add_file, python_file

        self._python_files = {}
        for path in paths:
            add_file(self._python_files, python_file(path, "-pyfs"), "-pyfs")

    def _submit(self, submission: JobSubmission, required_slots: int) -> ClusterJobClient:
        key = self.keys.next(submission.name)
        submission = replace(
            key.put_on(submission), configuration=self._stage(submission.configuration)
        )
        answer = self.settled(
            lambda: self._connection.submit(submission, required_slots), submission.job_key, submission.name
        )
        return self.watch(answer, submission.name)

    def settled(self, submit: Callable[[], JobSubmitted], key: str, name: str) -> JobSubmitted:
        """Submit, and deal with a live job of the same key (``client.on-existing``).

        Raises
        ------
        DuplicateJob
            There is one, and the submit was to fail then; or it runs another program.
        """
        give_up_s = time.monotonic() + self._timeout_ms / 1000
        while True:
            answer = submit()
            if not answer.attached_to_existing:
                return answer
            if self._on_existing == "attach":
                if answer.other_program:
                    raise DuplicateJob(_runs_other_program(name, answer.job_id))
                return answer
            if self._on_existing == "fail":
                cancel = job_command("cancel", self._connection.cluster_of(answer.job_id), answer.job_id)
                raise DuplicateJob(
                    f"job key {key} belongs to the live job {answer.job_id}; cancel it with `{cancel}`, or "
                    "submit with --on-existing attach or replace"
                )
            try:
                self._end_existing(answer.job_id, name)
            except (RpcError, HaError):
                # its cluster may be about to end, or another master to lead
                if time.monotonic() >= give_up_s:
                    raise
                time.sleep(_RETRY_S)

    def _end_existing(self, job_id: JobId, name: str) -> None:
        if job_id not in self._replaced:
            self._replaced.add(job_id)
            self._listener.note(f"Cancelling job {job_id}, which has the same key.")
        cluster = self._connection.cluster_of(job_id)
        try:
            cluster.gateway().cancel_job(job_id)
            ClusterJobClient(cluster, job_id, name, timeout_ms=self._timeout_ms).await_end()
        except JobError as error:
            self._listener.note(f"It has ended already: {error}")

    def watch(self, answer: JobSubmitted, name: str) -> ClusterJobClient:
        """Keep track of a job that was accepted."""
        cluster = self._connection.cluster_of(answer.job_id)
        client = ClusterJobClient(
            cluster,
            answer.job_id,
            name,
            self._listener,
            attached=self._attached,
            cancel_on_interrupt=self._cancel_on_interrupt,
            timeout_ms=self._timeout_ms,
            attached_to_existing=answer.attached_to_existing,
            on_hadoop=self._on_hadoop,
        )
        self.clients.append(client)
        self._listener.submitted(
            answer.job_id, name, answer.attached_to_existing, page_of(cluster, answer.job_id)
        )
        path = self._configuration.get(job.STATE_RECOVERY_PATH.key, "")
        if answer.attached_to_existing and path not in ("", job.LATEST_STATE, job.NO_STATE):
            self._listener.note(
                f"The job runs already, so nothing starts from {path}; for that, submit with --on-existing "
                "replace."
            )
        if not self._attached:
            look, end = (job_command(verb, cluster, answer.job_id) for verb in ("info", "cancel"))
            self._listener.note(f"See how it is with `{look}`; end it with `{end}`.")
        return client

    def stop_collecting(self) -> None:
        """The program has ended: cancel jobs whose elements it did not read to the end."""
        for client in self.clients:
            client.stop_collecting()

    def await_all(self) -> None:
        """Wait for every job nobody waited for; raise the first that did not FINISH.

        A program may catch the error of a failed job, but the command still fails.  A job whose elements the
        program did not read to the end is canceled, and its end is as good as any.
        """
        first: YarnflowError | None = None
        for client in self.clients:
            try:
                client.stop_collecting()
                if not client.left:
                    client.await_result()
            except YarnflowError as error:
                first = first or error
        if first is not None:
            raise first


def _runs_other_program(name: str, job_id: JobId) -> str:
    return (
        f"job {name}: its job key belongs to the live job {job_id}, which runs another text of the program "
        "or has other arguments; submit with --on-existing replace to take its place (and --restore latest "
        "to go on from its state), or with another --job-key to run beside it"
    )
