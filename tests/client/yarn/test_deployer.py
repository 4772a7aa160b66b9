"""Submits to YARN from the first check to the accepted job, and back."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.client.yarn.submits import (
    Client,
    applications,
    keys,
    options,
    running,
    submission,
    submit_world,
    unheard,
)
from tests.client.yarn.yarn_fakes import World, job_id
from tests.patience import PATIENCE
from yarnflow.client.cluster import SilentListener
from yarnflow.client.programs.job_key import JobKey
from yarnflow.client.yarn import submission as yarn_submit
from yarnflow.client.yarn.aggregated_logs import CollectedLine
from yarnflow.client.yarn.applications import ApplicationCluster
from yarnflow.client.yarn.deployer import YarnDeployer, describe_submit
from yarnflow.client.yarn.submission import Request
from yarnflow.core.json_codec import from_json
from yarnflow.core.messages import JobOverview, JobSubmitted
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import ApplicationState, DeploymentMode, FinalStatus, Queue
from yarnflow.errors import (
    ApplicationFailed,
    DuplicateJob,
    LeadershipLost,
    QueueUnavailable,
    RpcTimeout,
    RpcUnavailable,
    StorageDenied,
    StorageUnavailable,
    YarnError,
    YarnflowError,
    YarnUnavailable,
)
from yarnflow.staging.deployment import Deployment
from yarnflow.testing.gateways.dispatcher import FakeDispatcher, details

M, S, F = DeploymentMode, ApplicationState, FinalStatus
JOB = job_id(7)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return submit_world(tmp_path, monkeypatch)


# --- per job --------------------------------------------------------------------


def test_a_job_gets_a_cluster_of_its_own(world: World) -> None:
    client = Client(world, taskmanager_numberOfTaskSlots="2")
    assert world.submitter.calls == ["start"]
    assert client.submit(slots=3) == JobSubmitted(JOB)
    (spec,) = world.submitter.specs
    assert spec.initial_task_managers == 2 and spec.name == "flights"
    own = {"deployment.json", "secret", "submission.json", "skein.jar"}
    assert set(spec.master.resources) == own | {"yarnflow-dist", "hadoop-conf"}
    assert "submission.json" not in spec.task_manager.resources
    sizes = {resource.size_bytes for resource in spec.master.resources.values()}
    assert -1 not in sizes
    (folder,) = applications(world)
    deployment = from_json(Deployment, world.fs.read(f"{folder}/deployment.json").decode())
    assert deployment.mode is M.PER_JOB and deployment.job_id == JOB and deployment.required_slots == 3
    assert deployment.application_dir == folder and deployment.python.startswith("/")
    checkpoints = f"{world.fs.uri}{world.fs.home()}/.yarnflow/checkpoints"
    assert deployment.configuration["execution.checkpointing.dir"] == checkpoints
    assert len(world.fs.read(f"{folder}/secret").strip()) == 64
    assert client.deployer.cluster_of(JOB).gateway() is world.dispatchers["application_1_0001:1"]
    client.stop()
    assert applications(world) == [folder] and world.yarn.killed == []
    said = "application_1_0001 (flights) has been submitted to queue default"
    assert any(said in note for note in client.notes)


def test_each_job_of_a_program_gets_its_own(world: World) -> None:
    client = Client(world)
    client.submit(submission(number=1))
    client.submit(submission(number=2))
    assert len(applications(world)) == 2
    first, second = (client.deployer.cluster_of(job_id(number)) for number in (1, 2))
    assert first is not second and client.deployer.gateway() is second.gateway()


def test_a_submit_whose_uploads_take_long_is_not_swept_away(world: World) -> None:
    swept: list[str] = []

    def sweep(operation: str, path: str) -> None:
        """What another submit does with one that is silent for so long."""
        if operation == "upload" and not swept:
            swept.extend(applications(world))
            for folder in swept:
                world.fs.delete(folder)

    world.fs.before = sweep
    client = Client(world)
    assert client.submit() == JobSubmitted(JOB)
    assert len(swept) == 1


def test_second_submit_uploads_nothing(world: World) -> None:
    Client(world).submit()
    uploads: list[str] = []
    world.fs.before = lambda operation, path: uploads.append(path) if operation == "upload" else None
    Client(world).submit(submission(number=8))
    assert uploads == []


def test_priority(world: World) -> None:
    Client(world, yarn_application_priority="5").submit()
    assert world.yarn.priorities == {"application_1_0001": 5}


def test_a_priority_yarn_does_not_take_is_no_failure(world: World) -> None:
    world.yarn.priority_error = YarnError("not allowed")
    client = Client(world, yarn_application_priority="5")
    client.submit()
    assert any("not allowed" in note for note in client.notes)


def test_an_accepted_job_needs_no_resource_manager(world: World) -> None:
    client = Client(world)

    def serve(application_id: str, deployment_id: str) -> None:
        world.serve(application_id, deployment_id)
        world.yarn.error = YarnUnavailable("just restarting")

    world.master = serve
    assert client.submit() == JobSubmitted(JOB)
    assert world.yarn.killed == []


# --- what is said before anything is submitted --------------------------------------


def nothing_left(world: World) -> None:
    assert applications(world) == []
    assert world.submitter.specs == []
    assert world.submitter.closed.wait(PATIENCE.thread_s)


@pytest.mark.parametrize(
    ("values", "error"),
    [({"yarn_application_queue": "none"}, QueueUnavailable), ({"yarn_ship-files": "/none"}, Exception)],
)
def test_refused_before_anything_is_there(
    world: World, values: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        Client(world, M.PER_JOB, **values)
    nothing_left(world)
    assert world.fs.list(f"{world.fs.home()}/.yarnflow/cache") == []


def test_a_check_that_fails_while_another_makes_the_directory(world: World) -> None:
    world.services()
    looked = threading.Event()

    def slowly(operation: str, path: str) -> None:
        if operation == "make_directory" and "/applications/" in path:
            assert looked.wait(PATIENCE.thread_s)

    def queues() -> list[Queue]:
        threading.Timer(0.05, looked.set).start()
        raise YarnUnavailable("no ResourceManager answers")

    world.fs.before = slowly
    world.yarn.queues = queues  # type: ignore[method-assign]
    with pytest.raises(YarnUnavailable):
        Client(world)
    nothing_left(world)


def test_yarn_is_down(world: World) -> None:
    world.yarn.error = YarnUnavailable("no ResourceManager answers")
    with pytest.raises(YarnUnavailable):
        Client(world)
    nothing_left(world)


@pytest.mark.parametrize("error", [StorageUnavailable("safe mode"), StorageDenied("not yours")])
def test_hdfs_that_cannot_be_written_to(world: World, error: Exception) -> None:
    world.services()

    def refuse(operation: str, path: str) -> None:
        if operation == "make_directory":
            raise error

    world.fs.before = refuse
    with pytest.raises(type(error)):
        Client(world)
    nothing_left(world)


# --- interrupted ----------------------------------------------------------------


def test_given_up_before_the_submit(world: World) -> None:
    client = Client(world)
    assert len(applications(world)) == 1
    client.stop(forced=True)
    nothing_left(world)


def test_given_up_during_the_submit(world: World) -> None:
    client = Client(world)
    world.submitter.may_end.clear()
    world.master = lambda application_id, deployment_id: None
    main_thread = threading.get_ident()
    world.submitter.on_submit = lambda: signal.pthread_kill(main_thread, signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        client.submit(submission("k"))
    # YARN takes it all the same
    world.submitter.may_end.set()
    client.stop(forced=True)
    assert world.yarn.killed == ["application_1_0001"]
    assert applications(world) == []
    holder = keys(world).holder("k")
    assert holder is not None and holder.revoked


def test_given_up_while_it_waits_in_the_queue(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.master = lambda application_id, deployment_id: None
    world.fs.make_directory(f"{world.fs.home()}/.skein/application_1_0001")

    def interrupt(count: int) -> None:
        raise KeyboardInterrupt

    world.yarn.on_look = interrupt
    client = Client(world)
    with pytest.raises(KeyboardInterrupt):
        client.submit(submission("k"))
    world.yarn.on_look = lambda count: None
    client.stop(forced=True)
    assert world.yarn.killed == ["application_1_0001"] and applications(world) == []
    assert world.fs.status(f"{world.fs.home()}/.skein/application_1_0001") is None


def test_a_key_is_given_back_by_a_submit_that_gives_up(world: World) -> None:
    client = Client(world)
    world.submitter.error = YarnError("no")
    with pytest.raises(YarnError):
        client.submit(submission("k"))
    client.stop(forced=True)
    holder = keys(world).holder("k")
    assert holder is not None and holder.revoked
    world.submitter.error = None
    assert Client(world).submit(submission("k", 8)) == JobSubmitted(job_id(8))


def test_what_cannot_be_taken_back_is_said(world: World) -> None:
    client = Client(world)

    def refuse(operation: str, path: str) -> None:
        if operation == "delete":
            raise StorageUnavailable("away")

    world.fs.before = refuse
    client.stop(forced=True)
    assert any("away" in note and "sweep" in note for note in client.notes)


# --- early death ------------------------------------------------------------------


def test_death_of_the_application_shows_its_masters_last_lines(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(application_id: str, deployment_id: str) -> None:
        world.yarn.change(application_id, state=S.FAILED, diagnostics="exit code 1")

    world.master = die

    def cut_short() -> Iterator[CollectedLine]:
        yield CollectedLine("container_1", "application.driver.log", "boom\n")
        raise YarnUnavailable("status 1")

    answers = [iter([]), cut_short()]
    monkeypatch.setattr(yarn_submit, "collected_lines", lambda *_: answers.pop(0))
    client = Client(world)
    with pytest.raises(ApplicationFailed, match="exit code 1") as raised:
        client.submit()
    assert "boom" in raised.value.__notes__[0]
    client.stop()
    assert applications(world) == []


def test_a_master_that_said_why_is_believed(world: World) -> None:
    def die(application_id: str, deployment_id: str) -> None:
        world.end(application_id, deployment_id, F.FAILED, diagnostics="job key k was taken over")

    world.master = die
    with pytest.raises(ApplicationFailed, match="taken over") as raised:
        Client(world).submit()
    assert not hasattr(raised.value, "__notes__")


def test_a_job_that_its_master_refuses_ends_as_where_no_application_is_started(world: World) -> None:
    code, said = DuplicateJob.code, "submit with --restore latest"

    def refuse(application_id: str, deployment_id: str) -> None:
        world.end(application_id, deployment_id, F.FAILED, diagnostics=said, error_code=code)

    world.master = refuse
    with pytest.raises(DuplicateJob, match=f"application_1_0001.*{said}"):
        Client(world).submit()


def test_a_job_that_was_faster_than_its_client(world: World) -> None:
    def run(application_id: str, deployment_id: str) -> None:
        done = details(JOB, 9, JobStatus.FINISHED)
        world.end(application_id, deployment_id, F.SUCCEEDED, done)

    world.master = run
    client = Client(world)
    assert client.submit() == JobSubmitted(JOB)
    found = client.deployer.final_details(JOB)
    assert found is not None and found.overview.status is JobStatus.FINISHED


# --- application mode ----------------------------------------------------------------


def application_client(world: World, tmp_path: Path) -> YarnDeployer:
    for name in "prog.py", "lib.zip":
        (tmp_path / name).write_text("")
    files = (str(tmp_path / "prog.py"), str(tmp_path / "lib.zip"))
    return YarnDeployer.begin(options(), M.APPLICATION, unheard, files)


def test_the_program_runs_there(world: World, tmp_path: Path) -> None:
    def serve(application_id: str, deployment_id: str) -> None:
        world.serve(application_id, deployment_id).submissions.append(submission(number=5))

    world.master = serve
    deployer = application_client(world, tmp_path)
    assert deployer.submit_program("prog", ("--x", "1"), 2, JobKey("k")) == JobSubmitted(job_id(5))
    (spec,) = world.submitter.specs
    assert {"prog.py", "lib.zip"} <= set(spec.master.resources)
    assert not {"prog.py", "lib.zip", "submission.json"} & set(spec.task_manager.resources)
    (folder,) = applications(world)
    deployment = from_json(Deployment, world.fs.read(f"{folder}/deployment.json").decode())
    assert deployment.program_argv == ("-pyfs", "lib.zip", "prog.py", "--x", "1")
    assert deployment.initial_task_managers == 2 and deployment.job_key == "k"
    found = deployer.cluster_of(job_id(5))
    assert isinstance(found, ApplicationCluster) and found.mode is M.APPLICATION


def test_a_program_that_ends_without_a_job(world: World, tmp_path: Path) -> None:
    def fail(application_id: str, deployment_id: str) -> None:
        world.serve(application_id, deployment_id)
        world.end(application_id, deployment_id, F.FAILED, diagnostics="prog.py failed: ValueError: x")

    world.master = fail
    with pytest.raises(ApplicationFailed, match="ValueError: x"):
        application_client(world, tmp_path).submit_program("prog", (), 1, JobKey())


@pytest.mark.parametrize("error", [RpcTimeout("late"), RpcUnavailable("nobody"), LeadershipLost("standby")])
def test_a_master_that_is_slow_to_tell_the_first_job(
    error: YarnflowError, world: World, tmp_path: Path
) -> None:
    answers = iter([error])

    def serve(application_id: str, deployment_id: str) -> None:
        dispatcher = world.serve(application_id, deployment_id)
        dispatcher.submissions.append(submission(number=5))

        def list_jobs() -> Sequence[JobOverview]:
            for refusal in answers:
                raise refusal
            return FakeDispatcher.list_jobs(dispatcher)

        dispatcher.list_jobs = list_jobs  # type: ignore[method-assign]

    world.master = serve
    answer = application_client(world, tmp_path).submit_program("prog", (), 1, JobKey())
    assert answer == JobSubmitted(job_id(5))


@pytest.mark.parametrize("ends", [True, False])
def test_an_interrupt_before_the_first_job(ends: bool, world: World, tmp_path: Path) -> None:
    ended: list[str] = []

    def serve(application_id: str, deployment_id: str) -> None:
        dispatcher = world.serve(application_id, deployment_id)

        def list_jobs() -> Sequence[JobOverview]:
            raise KeyboardInterrupt

        dispatcher.list_jobs = list_jobs  # type: ignore[method-assign]
        dispatcher.shut_down_cluster = lambda: ended.append(application_id)  # type: ignore[method-assign]

    world.master = serve
    notes: list[str] = []
    configuration = options(**{"execution.shutdown-on-attached-exit": str(ends).lower()})
    (tmp_path / "prog.py").write_text("")
    deployer = YarnDeployer.begin(configuration, M.APPLICATION, notes.append, (str(tmp_path / "prog.py"),))
    with pytest.raises(KeyboardInterrupt):
        deployer.submit_program("prog", (), 1, JobKey())
    deployer.stop(forced=True, failed=False)
    assert ended == (["application_1_0001"] if ends else []) and world.yarn.killed == []
    assert ("Ending application" if ends else "yarn application -kill application_1_0001") in notes[-1]


def test_an_interrupt_while_a_program_is_followed_leaves_it(world: World, tmp_path: Path) -> None:
    def serve(application_id: str, deployment_id: str) -> None:
        world.serve(application_id, deployment_id).submissions.append(submission(number=5))

    def interrupt(method: str) -> None:
        raise KeyboardInterrupt

    world.master = serve
    notes: list[str] = []
    (tmp_path / "prog.py").write_text("")
    deployer = YarnDeployer.begin(options(), M.APPLICATION, notes.append, (str(tmp_path / "prog.py"),))
    programs = deployer.programs
    assert programs is not None
    answer = programs.submit_program("prog", (), 1, JobKey())
    (dispatcher,) = world.dispatchers.values()
    dispatcher.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        programs.follow(answer.job_id, SilentListener(), 1_000)
    assert "yarn application -kill application_1_0001" in notes[-1] and world.yarn.killed == []


def test_other_modes_run_programs_in_the_client(world: World) -> None:
    assert Client(world).deployer.programs is None


def test_second_submit_of_a_running_program_attaches_to_its_job(world: World, tmp_path: Path) -> None:
    def serve(application_id: str, deployment_id: str) -> None:
        world.serve(application_id, deployment_id).submissions.append(submission(number=5))

    world.master = serve
    application_client(world, tmp_path).submit_program("prog", (), 1, JobKey("k"))
    answer = application_client(world, tmp_path).submit_program("prog", (), 1, JobKey("k"))
    assert answer == JobSubmitted(job_id(5), attached_to_existing=True)


# --- sessions -------------------------------------------------------------------------


def test_start_of_a_session(world: World) -> None:
    client = Client(world, M.SESSION)
    assert client.deployer.start_session().application_id == "application_1_0001"
    (spec,) = world.submitter.specs
    assert spec.initial_task_managers == 0 and spec.name == "yarnflow session"
    assert "submission.json" not in spec.master.resources
    client.stop()
    assert len(applications(world)) == 1


# --- dry run ---------------------------------------------------------------------------


def test_dry_run_changes_nothing(world: World) -> None:
    world.services()
    changes: list[str] = []

    def note(operation: str, path: str) -> None:
        if operation not in ("status", "list", "read", "home"):
            changes.append(f"{operation} {path}")

    monkey = world.fs
    monkey.before = note
    request = Request("flights", 3, submission=submission())
    text = describe_submit(options(taskmanager_numberOfTaskSlots="3"), M.PER_JOB, request, unheard)
    relevant = [change for change in changes if ".yarnflow/" in change and "make_directory" not in change]
    assert relevant == [] and applications(world) == []
    assert world.submitter.calls == [] and world.submitter.specs == []
    assert "submission.json" in text and f"yarnflow-job-{JOB}" in text and "instances: 1" in text


def test_dry_run_refuses_what_a_submit_would_refuse(world: World) -> None:
    world.yarn.all_queues = [Queue("other", "root.other")]
    with pytest.raises(QueueUnavailable):
        describe_submit(options(), M.PER_JOB, Request("flights", 1), unheard)


def test_no_submit_has_two_directories(world: World) -> None:
    """A second job after one that was only attached to uses the directory that is there."""
    running(world)
    client = Client(world)
    client.submit(submission("k", 2))
    folders, made = applications(world), list[str]()
    world.fs.before = lambda operation, path: made.append(path) if operation == "make_directory" else None
    client.submit(replace(submission("", 3)))
    assert applications(world) == folders
    assert {path for path in made if path.startswith(world.services().layout.applications)} <= {*folders}
