"""Waiting for a job: its end, its errors, interrupts, a cluster that goes away."""

from __future__ import annotations

import signal
import threading
import traceback
from pathlib import Path

import pytest

from tests.client.fakes import FakeConnection, Listener
from tests.client.jars.test_files import jar
from tests.client.yarn.submits import submit_world
from tests.graph import graphs as g
from tests.patience import PATIENCE
from yarnflow.api.building import shipped
from yarnflow.client import job_client
from yarnflow.client.executor import ClusterExecutor, script_submission, shipped_options
from yarnflow.client.jars.bring import JarBringer
from yarnflow.client.job_client import ClusterJobClient
from yarnflow.client.programs.job_key import JobKeyChoice, ProgramIdentity
from yarnflow.client.programs.program import Program
from yarnflow.client.yarn import shipping as yarn_shipping
from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import JobId, VertexId, is_job_id
from yarnflow.core.messages import ErrorInfo, JobSubmission, JobSubmitted, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.errors import (
    AuthenticationFailed,
    DuplicateJob,
    GraphError,
    JarError,
    JobCanceled,
    JobError,
    JobFailed,
    LeadershipLost,
    ProgramNotFound,
    ResourceError,
    RpcTimeout,
    RpcUnavailable,
    SourceNotFound,
    UserCodeError,
    YarnflowError,
)
from yarnflow.graph.codec import job_graph_from_json
from yarnflow.graph.generation.chaining import create_job_graph
from yarnflow.graph.job_graph import JobGraph, JobVertex
from yarnflow.testing.gateways.dispatcher import FakeDispatcher, details

JOB = JobId("ab" * 16)
S = JobStatus


def _client(
    dispatcher: FakeDispatcher, owned: bool = True, timeout_ms: int = 60_000
) -> tuple[ClusterJobClient, Listener]:
    listener = Listener()
    connection = FakeConnection(dispatcher, owned)
    return ClusterJobClient(connection, JOB, "flights", listener, timeout_ms=timeout_ms), listener


def test_finished() -> None:
    client, listener = _client(FakeDispatcher())
    assert client.await_result().overview.status is S.FINISHED
    assert listener.states == [S.CREATED, S.RUNNING, S.FINISHED]
    assert client.get_job_execution_result().net_runtime_ms > 0
    assert len(listener.states) == 3  # the end was not waited for again


@pytest.mark.parametrize(
    ("info", "expected", "text"),
    [
        (None, JobFailed, "without a reported cause"),
        (ErrorInfo("USER_CODE", "ZeroDivision", "Traceback x"), UserCodeError, "failed: ZeroDivision"),
        (ErrorInfo("SOURCE_NOT_FOUND", "no /data"), SourceNotFound, "failed: no /data"),
        (ErrorInfo("FROM_THE_FUTURE", "what"), JobFailed, "failed: what"),
    ],
)
def test_failed(info: ErrorInfo | None, expected: type[Exception], text: str) -> None:
    dispatcher = FakeDispatcher([S.RUNNING, S.FAILED])
    dispatcher.error = info
    client, _ = _client(dispatcher)
    with pytest.raises(expected, match=text) as caught:
        client.await_result()
    assert JOB in str(caught.value)
    if isinstance(caught.value, UserCodeError):
        assert caught.value.traceback_text == "Traceback x"
        shown = "".join(traceback.format_exception(caught.value))
        assert shown.index("Traceback x") < shown.index(__file__), "the user's own traceback is not the first"


def test_canceled_by_somebody() -> None:
    client, _ = _client(FakeDispatcher([S.RUNNING, S.CANCELED]))
    with pytest.raises(JobCanceled):
        client.await_result()


def test_time_limit() -> None:
    client, _ = _client(FakeDispatcher([S.RUNNING]))
    with pytest.raises(RpcTimeout, match="did not end"):
        client.await_result(0.05)


def _interrupt() -> None:
    """Ctrl-C: the kernel gives the signal to the main thread, whoever else runs."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def _interrupt_when_running(dispatcher: FakeDispatcher) -> None:
    def on_poll(version: int) -> None:
        if version == len(dispatcher.states):
            _interrupt()

    dispatcher.on_poll = on_poll


def test_interrupt_cancels_in_an_owned_cluster() -> None:
    dispatcher = FakeDispatcher([S.RUNNING])
    _interrupt_when_running(dispatcher)
    client, listener = _client(dispatcher)
    with pytest.raises(KeyboardInterrupt):
        client.await_result()
    assert dispatcher.cancelled == [JOB]
    assert listener.states[-1] is S.CANCELED
    assert "Cancelling job" in listener.notes[0]


def _join_cancel() -> None:
    for thread in threading.enumerate():
        if thread.name == "cancel":
            thread.join(PATIENCE.thread_s)


def test_a_cluster_that_ends_before_it_answers_the_cancel() -> None:
    dispatcher = FakeDispatcher([S.RUNNING])
    _interrupt_when_running(dispatcher)
    client, listener = _client(dispatcher)

    def cancel(job_id: JobId) -> None:
        # it is heard of that before the end is seen
        threading.Timer(0.3, FakeDispatcher.cancel_job, (dispatcher, job_id)).start()
        raise RpcUnavailable("nobody listens")

    dispatcher.cancel_job = cancel  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        client.await_result()
    _join_cancel()
    assert not any("Could not cancel" in note for note in listener.notes)


def test_a_cancel_that_does_not_arrive_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_client, "_END_SEEN_S", 0.1)
    dispatcher = FakeDispatcher([S.RUNNING])
    _interrupt_when_running(dispatcher)
    client, listener = _client(dispatcher)

    def cancel(job_id: JobId) -> None:
        # the user has seen nothing happen
        threading.Timer(0, _interrupt).start()
        raise RpcUnavailable("nobody listens")

    dispatcher.cancel_job = cancel  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        client.await_result()
    _join_cancel()
    assert "Could not cancel: nobody listens" in listener.notes
    dispatcher.cancelled.append(JOB)


def test_second_interrupt_does_not_wait() -> None:
    dispatcher = FakeDispatcher([S.RUNNING])
    refuse = threading.Event()

    def never_cancel(job_id: JobId) -> None:
        _interrupt()  # the user, while the cluster does not answer
        refuse.wait(PATIENCE.thread_s)

    dispatcher.cancel_job = never_cancel  # type: ignore[method-assign]
    _interrupt_when_running(dispatcher)
    client, listener = _client(dispatcher)
    with pytest.raises(KeyboardInterrupt):
        client.await_result()
    refuse.set()
    assert S.CANCELED not in listener.states


def test_interrupt_leaves_a_remote_job_running() -> None:
    dispatcher = FakeDispatcher([S.RUNNING])
    _interrupt_when_running(dispatcher)
    client, listener = _client(dispatcher, owned=False)
    with pytest.raises(KeyboardInterrupt):
        client.await_result()
    assert dispatcher.cancelled == []
    assert listener.notes == [f"The job goes on; cancel it with: yarnflow cancel -m host:1 {JOB}"]
    dispatcher.cancel_job(JOB)  # lets the poll of the test end


def test_interrupt_cancels_a_remote_job_when_asked_to() -> None:
    dispatcher = FakeDispatcher([S.RUNNING])
    _interrupt_when_running(dispatcher)
    connection = FakeConnection(dispatcher, owned=False)
    with pytest.raises(KeyboardInterrupt):
        ClusterJobClient(connection, JOB, "flights", cancel_on_interrupt=True).await_result()
    assert dispatcher.cancelled == [JOB]


@pytest.mark.parametrize("error", [RpcUnavailable("gone"), AuthenticationFailed("somebody else's port")])
def test_what_a_gone_cluster_left_is_the_end(error: YarnflowError) -> None:
    dispatcher = FakeDispatcher()

    def on_poll(version: int) -> None:
        raise error

    dispatcher.on_poll = on_poll
    connection = FakeConnection(dispatcher, owned=False)
    connection.left = details(JOB, 9, S.FINISHED)
    connection.lost = ResourceError("and it is gone")
    assert ClusterJobClient(connection, JOB, "flights").await_result() == connection.left
    connection.left = details(JOB, 9, S.FAILED, error=ErrorInfo("USER_CODE", "ValueError: x"))
    with pytest.raises(UserCodeError, match="ValueError: x"):
        ClusterJobClient(connection, JOB, "flights").await_result()
    connection.left = None
    with pytest.raises(ResourceError, match="and it is gone"):
        ClusterJobClient(connection, JOB, "flights").await_result()


def test_a_wrong_secret_is_not_tried_again() -> None:
    dispatcher = FakeDispatcher()
    tries: list[int] = []

    def on_poll(version: int) -> None:
        tries.append(version)
        raise AuthenticationFailed("wrong secret")

    dispatcher.on_poll = on_poll
    with pytest.raises(AuthenticationFailed):
        ClusterJobClient(FakeConnection(dispatcher, owned=False), JOB, "flights").await_result()
    assert len(tries) == 1


def test_await_end_takes_every_end() -> None:
    client, _ = _client(FakeDispatcher([S.RUNNING, S.FAILED]))
    assert client.await_end().overview.status is S.FAILED


def test_lost_cluster_is_named() -> None:
    dispatcher = FakeDispatcher()
    dispatcher.unreachable = True
    client, _ = _client(dispatcher, timeout_ms=0)
    with pytest.raises(RpcUnavailable):
        client.await_result()
    connection = FakeConnection(dispatcher)
    connection.lost = ResourceError("the JobManager ended with signal 9")
    with pytest.raises(ResourceError, match="signal 9"):
        ClusterJobClient(connection, JOB, "x").await_result()


def test_short_silence_is_survived() -> None:
    dispatcher = FakeDispatcher()
    calls = iter([RpcUnavailable("gone"), None, None, None])

    def on_poll(version: int) -> None:
        error = next(calls)
        if error is not None:
            raise error

    dispatcher.on_poll = on_poll
    client, listener = _client(dispatcher)
    client.await_result()
    assert listener.states[-1] is S.FINISHED


# --- executor ----------------------------------------------------------------


def test_executor_submits_graphs_with_the_programs_options_on_top() -> None:
    dispatcher = FakeDispatcher()
    executor = ClusterExecutor(
        FakeConnection(dispatcher),
        {"parallelism.default": "2", "pipeline.name": "n"},
        Listener(),
        keys=_k(),
    )
    graph = JobGraph(JOB, "flights", ProgramKind.GRAPH, configuration={"parallelism.default": "4"})
    executor.submit(graph)
    submission = dispatcher.submissions[0]
    assert submission.configuration == {"parallelism.default": "4", "pipeline.name": "n"}
    assert submission.job_key == "k" and submission.job_id == JOB
    assert job_graph_from_json(submission.job_graph_json) == graph


def test_files_of_the_command_and_of_the_program_go_with_graphs(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("N = 1")
    dispatcher = FakeDispatcher()
    executor = ClusterExecutor(FakeConnection(dispatcher), {}, Listener())
    executor.ship_python_files([str(tmp_path / "m.py")])
    executor.submit(JobGraph(JOB, "flights", ProgramKind.GRAPH, files={"python/n.py": b"N = 2"}))
    assert dispatcher.submissions[0].files == {"python/m.py": b"N = 1", "python/n.py": b"N = 2"}
    with pytest.raises(GraphError, match=r"^-pyfs: .*none\.py cannot be read"):
        executor.ship_python_files([str(tmp_path / "none.py")])


def test_files_of_the_command_need_names_of_their_own_and_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "m.py").write_text("N = 1")
    (tmp_path / "b" / "m.py").write_text("N = 2")
    executor = ClusterExecutor(FakeConnection(FakeDispatcher()), {}, Listener())
    with pytest.raises(GraphError, match="^-pyfs: two different files would be shipped as python/m.py"):
        executor.ship_python_files([str(tmp_path / "m.py"), str(tmp_path / "b" / "m.py")])
    executor.ship_python_files([str(tmp_path / "m.py")])
    monkeypatch.setattr(shipped, "_MAX_BYTES", 8)
    with pytest.raises(GraphError, match="^job 'flights': all files of the job together: 10 bytes"):
        executor.submit(JobGraph(JOB, "flights", ProgramKind.GRAPH, files={"python/n.py": b"N = 2"}))


def test_state_that_only_grows_is_warned_of_once_when_the_job_is_submitted() -> None:
    dispatcher, listener = FakeDispatcher(), Listener()
    made = g.straight([g.SOURCE, g.RUNNING, g.NATIVE, g.PRINT])
    ClusterExecutor(FakeConnection(dispatcher), {}, listener).submit(create_job_graph(made, JOB))
    (warning,) = [note for note in listener.notes if note.startswith("WARNING")]
    assert warning.startswith("WARNING: job.py:2: 'RunningAggregate': keeps every key (a) for ever")
    assert len(dispatcher.submissions) == 1


def test_jars_of_the_program_and_of_its_text_are_found_before_it_is_handed_over(tmp_path: Path) -> None:
    own = jar(tmp_path / "own.jar")
    dispatcher, listener = FakeDispatcher(), Listener()
    executor = ClusterExecutor(FakeConnection(dispatcher), {"spark.x": "1"}, listener)
    asked = {"pipeline.jars": f"{own};{jar(tmp_path / 'flink.jar', 'org/apache/flink/X.class')}"}
    executor.submit(JobGraph(JOB, "flights", ProgramKind.GRAPH, configuration=asked))
    source = f'SparkSession.builder.config("spark.jars", "{own}")'.encode()
    argv = ("job.py",)
    script = JobSubmission(
        JobId("2" * 32), "s", ProgramKind.SCRIPT, "{}", {}, files={"job.py": source}, script_argv=argv
    )
    executor.submit_script(script, 1)
    for submission in dispatcher.submissions:
        assert submission.configuration["spark.jars"] == f"file://{own}"
    assert dispatcher.submissions[0].configuration["spark.x"] == "1"
    assert len([note for note in listener.notes if "flink.jar is a jar of Flink" in note]) == 1
    asked = {"pipeline.jars": str(tmp_path / "gone.jar")}
    with pytest.raises(JarError, match="gone.jar does not exist"):
        executor.submit(JobGraph(JOB, "flights", ProgramKind.GRAPH, configuration=asked))
    assert len(dispatcher.submissions) == 2


def test_jars_of_the_command_stay_when_the_program_sets_its_own(tmp_path: Path) -> None:
    ours, own = jar(tmp_path / "ours.jar"), jar(tmp_path / "own.jar")
    dispatcher, listener = FakeDispatcher(), Listener()
    options = JarBringer(listener.note).bring({"spark.jars": str(ours)})
    executor = ClusterExecutor(FakeConnection(dispatcher), options, listener)
    executor.submit(JobGraph(JOB, "flights", ProgramKind.GRAPH, configuration={"spark.jars": str(own)}))
    assert dispatcher.submissions[0].configuration["spark.jars"] == f"file://{ours},file://{own}"


def test_a_driver_that_was_kept_has_the_same_content_of_its_jars(tmp_path: Path) -> None:
    own = jar(tmp_path / "own.jar")
    dispatcher = FakeDispatcher()
    executor = ClusterExecutor(FakeConnection(dispatcher), {"spark.jars": str(own)}, Listener())
    for _ in range(2):
        executor.submit(JobGraph(JOB, "flights", ProgramKind.GRAPH))
    jar(own, "other/Y.class")
    executor.submit(JobGraph(JOB, "flights", ProgramKind.GRAPH))
    first, same, changed = (submission.configuration for submission in dispatcher.submissions)
    assert first == same and first["spark.jars"] == changed["spark.jars"] and first != changed


def test_a_program_in_a_container_stages_its_own_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = submit_world(tmp_path, monkeypatch)
    monkeypatch.setattr(yarn_shipping, "yarn_services", world.yarn_services)
    monkeypatch.setenv("CONTAINER_ID", "container_1")
    monkeypatch.chdir(tmp_path)
    own = jar(tmp_path / "own.jar")
    dispatcher = FakeDispatcher()
    executor = ClusterExecutor.configured(FakeConnection(dispatcher), Configuration.empty(), Listener())
    executor.submit(JobGraph(JOB, "flights", ProgramKind.GRAPH, configuration={"spark.jars": str(own)}))
    staged = dispatcher.submissions[0].configuration["spark.jars"]
    assert world.fs.read(staged.removeprefix(world.fs.uri)) == own.read_bytes()


def test_each_submission_tells_its_slots() -> None:
    connection = FakeConnection(FakeDispatcher())
    executor = ClusterExecutor(connection, {}, Listener())
    vertices = tuple(
        JobVertex(VertexId(f"{n}"), "v", (), n, 128, group) for n, group in ((3, "a"), (4, "a"), (2, "b"))
    )
    graph = JobGraph(JOB, "flights", ProgramKind.GRAPH, vertices=vertices)
    executor.submit(graph)
    executor.submit(graph)
    assert connection.slots == [6, 6]


def _graph(name: str = "flights") -> JobGraph:
    return JobGraph(JOB, name, ProgramKind.GRAPH)


def _k() -> JobKeyChoice:
    return JobKeyChoice("k")


def _keys(dispatcher: FakeDispatcher) -> list[str]:
    return [submission.job_key for submission in dispatcher.submissions]


def test_a_program_gives_its_jobs_keys_of_its_own() -> None:
    dispatcher = FakeDispatcher()
    keys = JobKeyChoice("", ProgramIdentity("ada", "/jobs/main.py", "d1"))
    executor = ClusterExecutor(FakeConnection(dispatcher), {}, Listener(), keys=keys)
    for name in "a", "b", "a", "a":
        executor.submit(_graph(name))
    assert [key.partition("@")[0] for key in _keys(dispatcher)] == ["a", "b", "a", "a"]
    assert [key.partition("#")[2] for key in _keys(dispatcher)] == ["", "", "2", "3"]
    assert [submission.earlier_job_key for submission in dispatcher.submissions] == ["a", "b", "a#2", "a#3"]
    assert {submission.program_digest for submission in dispatcher.submissions} == {"d1"}


def test_a_key_of_ones_own_comes_before_names() -> None:
    dispatcher = FakeDispatcher()
    keys = JobKeyChoice("k", ProgramIdentity("ada", "/jobs/main.py", "d1"))
    executor = ClusterExecutor(FakeConnection(dispatcher), {}, Listener(), keys=keys)
    executor.submit(_graph("a"))
    executor.submit(_graph("b"))
    assert _keys(dispatcher) == ["k", "k#2"]
    nameless = ClusterExecutor(FakeConnection(dispatcher), {}, Listener())
    nameless.submit(_graph("a"))
    assert _keys(dispatcher)[-1] == ""


class _Taken(FakeDispatcher):
    """Another job has the key as long as it lives."""

    OTHER = JobId("cd" * 16)
    is_other_program = False

    def submit_job(self, submission: JobSubmission) -> JobSubmitted:
        if self.OTHER in self.cancelled:
            return super().submit_job(submission)
        return JobSubmitted(self.OTHER, attached_to_existing=True, other_program=self.is_other_program)


def test_attach_to_the_job_that_has_the_key() -> None:
    client = ClusterExecutor(FakeConnection(_Taken()), {}, Listener(), keys=_k()).submit(_graph())
    assert client.job_id == _Taken.OTHER


def test_do_not_attach_to_a_job_that_runs_another_program() -> None:
    dispatcher = _Taken()
    dispatcher.is_other_program = True
    executor = ClusterExecutor(FakeConnection(dispatcher), {}, Listener(), keys=_k())
    with pytest.raises(DuplicateJob) as raised:
        executor.submit(_graph())
    for named in ("job flights", _Taken.OTHER, "--restore latest", "--on-existing replace", "--job-key"):
        assert named in str(raised.value)
    assert executor.clients == [] and dispatcher.cancelled == []


@pytest.mark.parametrize(("path", "said"), [("hdfs:///s", True), ("latest", False), ("none", False)])
def test_that_nothing_starts_from_the_named_state_is_said(path: str, said: bool) -> None:
    options, listener = {"execution.state-recovery.path": path}, Listener()
    ClusterExecutor(FakeConnection(_Taken()), options, listener, keys=_k()).submit(_graph())
    assert any("nothing starts from hdfs:///s;" in note for note in listener.notes) is said
    listener.notes.clear()
    ClusterExecutor(FakeConnection(FakeDispatcher()), options, listener, keys=_k()).submit(_graph())
    assert not any("nothing starts" in note for note in listener.notes)


def test_fail_when_a_job_has_the_key() -> None:
    dispatcher = _Taken()
    executor = ClusterExecutor(FakeConnection(dispatcher), {}, Listener(), keys=_k(), on_existing="fail")
    with pytest.raises(DuplicateJob, match=f"key k belongs to the live job {_Taken.OTHER}"):
        executor.submit(_graph())
    assert executor.clients == [] and dispatcher.cancelled == []


def test_replace_the_job_that_has_the_key() -> None:
    dispatcher = _Taken()
    listener = Listener()
    executor = ClusterExecutor(FakeConnection(dispatcher), {}, listener, keys=_k(), on_existing="replace")
    assert executor.submit(_graph()).job_id == JOB
    assert dispatcher.cancelled == [_Taken.OTHER]
    assert any(_Taken.OTHER in note for note in listener.notes)


@pytest.mark.parametrize("error", [RpcUnavailable("nobody listens"), LeadershipLost("standby")])
def test_replace_a_job_whose_cluster_is_about_to_end(error: YarnflowError) -> None:
    dispatcher = _Taken()

    def gone(job_id: JobId) -> None:
        dispatcher.cancelled.append(job_id)
        raise error

    dispatcher.cancel_job = gone  # type: ignore[method-assign]
    executor = ClusterExecutor(FakeConnection(dispatcher), {}, Listener(), keys=_k(), on_existing="replace")
    assert executor.submit(_graph()).job_id == JOB


def test_replace_a_job_that_ends_by_itself_meanwhile() -> None:
    dispatcher = _Taken()

    def too_late(job_id: JobId) -> None:
        dispatcher.cancelled.append(job_id)
        raise JobError("it is FINISHED already")

    dispatcher.cancel_job = too_late  # type: ignore[method-assign]
    executor = ClusterExecutor(FakeConnection(dispatcher), {}, Listener(), keys=_k(), on_existing="replace")
    assert executor.submit(_graph()).job_id == JOB


def test_only_options_of_the_job_and_of_spark_go_with_it() -> None:
    configuration = Configuration.from_dict(
        {
            "parallelism.default": "3",
            "driver.memory.process.size": "2g",
            "spark.sql.shuffle.partitions": "7",
            "taskmanager.memory.process.size": "3g",
            "akka.ask.timeout": "3 s",
            "heartbeat.timeout": "60 s",
            "client.timeout": "1 s",
            "security.cluster-secret-file": "secret",
        },
        "laptop",
    )
    assert shipped_options(configuration) == {
        "parallelism.default": "3",
        "driver.memory.process.size": "2g",
        "spark.sql.shuffle.partitions": "7",
    }


def test_detached_program_does_not_wait() -> None:
    executor = ClusterExecutor(FakeConnection(FakeDispatcher([S.RUNNING])), {}, Listener(), attached=False)
    client = executor.submit(JobGraph(JOB, "flights", ProgramKind.GRAPH))
    assert client.get_job_execution_result().net_runtime_ms == -1


def test_command_fails_although_the_program_caught_the_error() -> None:
    executor = ClusterExecutor(FakeConnection(FakeDispatcher([S.FAILED])), {}, Listener())
    client = executor.submit(JobGraph(JOB, "flights", ProgramKind.GRAPH))
    with pytest.raises(JobFailed):
        client.get_job_execution_result()
    with pytest.raises(JobFailed):
        executor.await_all()


def test_script_submission(tmp_path: object) -> None:
    import pathlib

    directory = pathlib.Path(str(tmp_path))
    (directory / "helper.py").write_text("x = 1")
    program = Program(
        "/jobs/count.py", ("a", "-b"), ProgramKind.SCRIPT, compile("", "x", "exec"), b"print()"
    )
    submission = script_submission(
        program, configuration={"a": "b"}, parallelism=3, files=[str(directory / "helper.py")]
    )
    assert is_job_id(submission.job_id)
    assert submission.script_argv == ("count.py", "a", "-b")
    assert submission.files == {"count.py": b"print()", "helper.py": b"x = 1"}
    graph = job_graph_from_json(submission.job_graph_json)
    assert graph.required_slots() == 3 and graph.vertices[0].name == "PySpark script"
    with pytest.raises(ProgramNotFound, match="-pyfs"):
        script_submission(program, configuration={}, parallelism=1, files=["/none.py"])
