"""The command line about YARN: flags, sessions, verbs about jobs."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.client.jars.test_files import jar
from tests.client.yarn.submits import applications, submit_world
from tests.client.yarn.yarn_fakes import World, job_id
from yarnflow.cli.main import main
from yarnflow.client.yarn import services as yarn_services
from yarnflow.core.ids import JobId
from yarnflow.core.jars.request import JarRequest
from yarnflow.core.json_codec import from_json
from yarnflow.core.messages import JobOverview, JobSubmission, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import ApplicationState, ClusterLimits, DeploymentMode, FinalStatus
from yarnflow.errors import LeadershipLost, RpcUnavailable, YarnUnavailable
from yarnflow.process.signals import ENDING
from yarnflow.spark.jars.store import PackageStore
from yarnflow.staging.deployment import Deployment
from yarnflow.testing.gateways.dispatcher import FakeDispatcher, details

M, S, J = DeploymentMode, ApplicationState, JobStatus
PROGRAM = """
from yarnflow.api.executor import current_executor
from yarnflow.graph.job_graph import JobGraph
from yarnflow.core.messages import ProgramKind
client = current_executor().submit(JobGraph("ab" * 16, "flights", ProgramKind.GRAPH))
client.get_job_execution_result()
print("after")
"""
ONE, TWO = "1" * 16, "2" * 16


@pytest.fixture(autouse=True)
def interpreter(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("YARNFLOW_CONF_DIR", raising=False)
    module, argv, path = sys.modules["__main__"], sys.argv, list(sys.path)
    handlers = {number: signal.getsignal(number) for number in ENDING}
    yield
    sys.modules["__main__"], sys.argv, sys.path[:] = module, argv, path
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = submit_world(tmp_path, monkeypatch)
    (tmp_path / "prog.py").write_text(PROGRAM)
    (tmp_path / "script.py").write_text("print(1)\n")
    monkeypatch.setattr(yarn_services, "yarn_services", made.yarn_services)
    monkeypatch.chdir(tmp_path)
    return made


def finishing(world: World) -> None:
    """Jobs of new applications FINISH at once."""

    def serve(application_id: str, deployment_id: str) -> None:
        world.serve(application_id, deployment_id).states = [J.RUNNING, J.FINISHED]

    world.master = serve


def deployed(world: World) -> Deployment:
    (folder,) = world.fs.list(f"{world.fs.home()}/.yarnflow/applications")
    return from_json(Deployment, world.fs.read(f"{folder.path}/deployment.json").decode())


# --- submit ----------------------------------------------------------------------


def test_submit(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    finishing(world)
    assert main(["submit", "-t", "yarn-per-job", "prog.py"]) == 0
    out, err = capsys.readouterr()
    assert out == "after\n"
    lines = err.splitlines()
    assert lines[0] == "Application application_1_0001 (flights) has been submitted to queue default."
    assert f"Job flights has been submitted with JobID {'ab' * 16}." in lines
    assert lines[-1].endswith("switched from state RUNNING to FINISHED.")
    assert deployed(world).job_key.startswith("flights@")


@pytest.mark.parametrize("target", ["yarn-per-job", "yarn-session"])
def test_jars_go_to_where_the_cluster_reads_them(target: str, world: World) -> None:
    own, dispatchers = jar(Path("own.jar")), list[FakeDispatcher]()
    world.master = lambda *application: dispatchers.append(world.serve(*application))
    if target == "yarn-session":
        world.add("application_1_5000", "5" * 16, mode=M.SESSION)
        dispatchers.append(world.serve("application_1_5000", "5" * 16))
    assert main(["submit", "-d", "-t", target, "--jars", str(own), "script.py"]) == 0
    staged = dispatchers[0].submissions[0].configuration["spark.jars"]
    assert world.fs.read(staged.removeprefix(world.fs.uri)) == own.read_bytes()


def test_detached_submit_says_job_and_application(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "-d", "-t", "yarn-per-job", "script.py"]) == 0
    err = capsys.readouterr().err
    assert "application_1_0001" in err and "has been submitted with JobID" in err
    assert "`yarnflow info -Dyarn.application.id=application_1_0001 " in err
    assert world.yarn.killed == []


def test_second_submit_follows_the_live_job(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "-d", "-t", "yarn-per-job", "prog.py"]) == 0
    capsys.readouterr()
    dispatcher = world.dispatchers["application_1_0001:1"]
    # it is RUNNING when the second submit looks, and FINISHED when it waits
    ended = FakeDispatcher([J.RUNNING, J.FINISHED])
    dispatcher.await_job_change = ended.await_job_change  # type: ignore[method-assign]
    assert main(["submit", "-t", "yarn-per-job", "prog.py"]) == 0
    err = capsys.readouterr().err
    assert f"attached to the live job with JobID {'ab' * 16}" in err and "FINISHED" in err
    assert len(world.submitter.specs) == 1


def test_on_existing_fail(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "-d", "-t", "yarn-per-job", "--job-key", "k", "prog.py"]) == 0
    status = main(
        ["submit", "-d", "-t", "yarn-per-job", "--job-key", "k", "--on-existing", "fail", "script.py"]
    )
    assert status == 42
    assert f"live job {'ab' * 16}" in capsys.readouterr().err


def test_habits_of_flink(world: World) -> None:
    command = "submit -d -m yarn-cluster -ynm Nightly -yjm 800m -ytm 2g -ys 2 -yD yarn.tags=x -p 4 script.py"
    assert main(command.split()) == 0
    (spec,) = world.submitter.specs
    assert (spec.name, spec.master.memory_mib, spec.task_manager.memory_mib) == ("Nightly", 2400, 2048)
    assert spec.initial_task_managers == 2 and "x" in spec.tags


def test_application_id_alone_means_the_session(world: World) -> None:
    world.add("application_1_5000", "5" * 16, mode=M.SESSION)
    dispatcher = world.serve("application_1_5000", "5" * 16)
    assert main(["submit", "-d", "-yid", "application_1_5000", "script.py"]) == 0
    assert [sent.name for sent in dispatcher.submissions] == ["script"]
    assert world.submitter.calls == ["close"]


def test_options_of_a_running_session_are_refused(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.add("application_1_5000", "5" * 16, mode=M.SESSION)
    for option in (["-Dtaskmanager.memory.process.size=2g"], ["-ys", "3"], ["-ytm", "2g"]):
        assert main(["submit", "-yid", "application_1_5000", *option, "script.py"]) == 12
        assert "TaskManagers" in capsys.readouterr().err
        assert main(["submit", "-d", "-t", "yarn-per-job", *option, "script.py"]) == 0


@pytest.mark.parametrize(
    ("flags", "key"),
    [
        (["-pyarch", "a.zip"], "yarn.ship-archives"),
        (["-Dyarn.ship-files=a"], "yarn.ship-files"),
        (["-yD", "python.environment=/env"], "python.environment"),
        (["-yqu", "fast"], "yarn.application.queue"),
        (["-yjm", "2g"], "jobmanager.memory.process.size"),
    ],
)
@pytest.mark.parametrize("target", ["local", "remote", "yarn-session"])
def test_options_of_an_application_are_refused_where_none_is_made(
    target: str, flags: list[str], key: str, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["submit", "-t", target, *flags, "script.py"]) == 12
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{key} (" in line and target in line


def test_what_stands_in_the_file_is_for_all_targets(world: World, tmp_path: Path) -> None:
    world.add("application_1_5000", "5" * 16, mode=M.SESSION)
    world.serve("application_1_5000", "5" * 16)
    lines = ("yarn.ship-files: a", "yarn.application.queue: fast", "taskmanager.numberOfTaskSlots: 3")
    (tmp_path / "conf" / "yarnflow-conf.yaml").write_text("\n".join(lines) + "\n")
    assert main(["submit", "-d", "--conf-dir", "conf", "-t", "yarn-session", "script.py"]) == 0


def test_application_mode_runs_the_program_there(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    job = JobSubmission(job_id(5), "flights", ProgramKind.GRAPH, "{}", {})

    def serve(application_id: str, deployment_id: str) -> None:
        dispatcher = world.serve(application_id, deployment_id)
        dispatcher.submissions.append(job)
        dispatcher.states = [J.RUNNING, J.FINISHED]
        dispatcher.on_poll = lambda version: (
            world.end(application_id, deployment_id, FinalStatus.SUCCEEDED) if version == 1 else None
        )

    world.master = serve
    own = jar(Path("own.jar"))
    flags = ["--name", "n", "--jars", str(own)]
    assert main(["submit", "-t", "yarn-application", *flags, "prog.py", "--x"]) == 0
    out, err = capsys.readouterr()
    assert out == "" and "FINISHED" in err
    staged = deployed(world).configuration["spark.jars"]
    assert world.fs.read(staged.removeprefix(world.fs.uri)) == own.read_bytes()
    assert deployed(world).program_argv == ("prog.py", "--x")
    assert deployed(world).job_key.startswith("n@")


def test_jars_that_a_program_names_are_staged_before_it_runs_there(world: World, tmp_path: Path) -> None:
    def serve(application_id: str, deployment_id: str) -> None:
        dispatcher = world.serve(application_id, deployment_id)
        dispatcher.submissions.append(JobSubmission(job_id(5), "flights", ProgramKind.GRAPH, "{}", {}))

    world.master = serve
    own = jar(tmp_path / "own.jar")
    (tmp_path / "prog.py").write_text(f"{PROGRAM}\nenv.add_jars('file://{own}', 'file:///elsewhere/x.jar')\n")
    assert main(["submit", "-d", "-t", "yarn-application", "prog.py"]) == 0
    options = deployed(world).configuration
    staged = options["spark.jars"]
    assert world.fs.read(staged.removeprefix(world.fs.uri)) == own.read_bytes()
    # there it asks for them again
    asked = JarRequest.of({**options, "pipeline.jars": f"file://{own};file:///elsewhere/x.jar"})
    assert asked.files == ("file:///elsewhere/x.jar",)


def test_jars_of_a_session(world: World) -> None:
    own = jar(Path("own.jar"))
    assert main(["session", "start", "-d", f"-Dspark.jars={own}"]) == 0
    staged = deployed(world).configuration["spark.jars"]
    assert world.fs.read(staged.removeprefix(world.fs.uri)) == own.read_bytes()
    assert JarRequest.of(deployed(world).configuration).empty


def test_interrupt_before_the_job_manager_serves_leaves_nothing(world: World) -> None:
    world.master = lambda application_id, deployment_id: None
    world.yarn.on_look = lambda count: os.kill(os.getpid(), signal.SIGTERM)
    assert main(["submit", "-t", "yarn-per-job", "prog.py"]) == 143
    assert world.yarn.killed == ["application_1_0001"]
    assert world.fs.list(f"{world.fs.home()}/.yarnflow/applications") == []


def test_one_interrupt_that_arrives_as_several_signals_leaves_nothing(world: World) -> None:
    world.master = lambda application_id, deployment_id: None
    world.yarn.on_look = lambda count: os.kill(os.getpid(), signal.SIGINT)
    kill = world.yarn.kill

    def interrupted(application_id: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        kill(application_id)

    world.yarn.kill = interrupted  # type: ignore[method-assign]
    assert main(["submit", "-t", "yarn-per-job", "prog.py"]) == 130
    assert world.yarn.killed == ["application_1_0001"]
    assert world.fs.list(f"{world.fs.home()}/.yarnflow/applications") == []


@pytest.mark.parametrize(
    ("target", "options", "status", "said"),
    [
        ("yarn-per-job", ["-Dyarn.application.queue=none"], 84, "root.default"),
        ("yarn-application", ["-Dtaskmanager.memory.process.size=20g"], 85, "20480"),
        ("yarn-per-job", ["-Dpython.environment=/none"], 86, "/none"),
        ("yarn-session", [], 82, "yarnflow session start"),
        ("yarn-session", ["-Dyarn.application.id=application_9_9"], 82, "application_9_9"),
    ],
)
def test_refused(
    target: str, options: list[str], status: int, said: str, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["submit", "-t", target, *options, "prog.py"]) == status
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and said in line
    assert world.submitter.specs == []


def test_a_program_without_a_job_leaves_nothing(world: World, tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("import yarnflow\n")
    assert main(["submit", "-t", "yarn-per-job", "empty.py"]) == 23
    assert world.fs.list(f"{world.fs.home()}/.yarnflow/applications") == []


def test_both_numbers_of_a_master_that_is_too_large(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.yarn.cluster_limits = ClusterLimits(2000, 8, 4000, 4000, 8, 8, 2)
    assert main(["submit", "-t", "yarn-per-job", "prog.py"]) == 85
    line = capsys.readouterr().err
    assert "2240" in line and "2000" in line


@pytest.mark.parametrize(
    ("target", "file", "said"),
    [
        ("yarn-per-job", "prog.py", f"yarnflow-job-{'ab' * 16}"),
        ("yarn-per-job", "script.py", "name: script"),
        ("yarn-application", "prog.py", "prog.py"),
    ],
)
def test_dry_run(
    target: str, file: str, said: str, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["submit", "--dry-run", "-t", target, file]) == 0
    out, err = capsys.readouterr()
    assert said in out and err == "" and "after" not in out
    assert world.submitter.calls == [] or world.submitter.calls == ["close"]
    assert world.fs.list(f"{world.fs.home()}/.yarnflow/applications") == []


@pytest.mark.parametrize("target", ["yarn-per-job", "yarn-application"])
def test_dry_run_resolves_no_packages(
    target: str, world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PackageStore, "get", lambda *_: pytest.fail("starts a JVM"))
    flags = ["--dry-run", "-t", target, "--packages"]
    assert main(["submit", *flags, "g:a:1", "script.py"]) == 0
    assert main(["submit", *flags, "g:a:1,g:a:2", "script.py"]) == 13
    assert main(["submit", *flags, "g:a:1", "--jars", "none.jar", "script.py"]) == 13
    assert "none.jar does not exist" in capsys.readouterr().err


def test_dry_run_of_what_is_no_application(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    for target in ("local", "remote", "yarn-session"):
        assert main(["submit", "--dry-run", "-t", target, "prog.py"]) == 0
        assert '"vertices"' in capsys.readouterr().out
    assert main(["submit", "--dry-run", "-d", "prog.py"]) == 12
    assert "a local cluster ends with its command" in capsys.readouterr().err
    refused = ["-t", "yarn-session", "-Dyarn.application.queue=q"]
    assert main(["submit", "--dry-run", *refused, "prog.py"]) == 12
    assert "yarn.application.queue" in capsys.readouterr().err


# --- verbs about jobs ---------------------------------------------------------------


def test_list_and_cancel(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "-d", "-t", "yarn-per-job", "prog.py"]) == 0
    world.submitter.calls.clear()
    for arguments in (["-t", "yarn-per-job"], ["-Dyarn.application.id=application_1_0001"]):
        capsys.readouterr()
        assert main(["list", *arguments]) == 0
        assert "ab" * 16 in capsys.readouterr().out
    assert main(["cancel", "-t", "yarn-application", "ab" * 16]) == 0
    assert world.dispatchers["application_1_0001:1"].cancelled == ["ab" * 16]
    assert main(["info", "-t", "yarn-per-job", "ab" * 16]) == 0
    assert "start" not in world.submitter.calls


def test_verbs_about_what_has_ended(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.add("application_1_1", ONE, S.FAILED, diagnostics="ValueError: x")
    assert main(["list", "-Dyarn.application.id=application_1_1"]) == 82
    assert "has ended (FAILED): ValueError: x" in capsys.readouterr().err


def test_verbs_about_a_job_that_has_just_ended(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    """Its JobManager is gone, for YARN the application still runs."""
    assert main(["submit", "-d", "-t", "yarn-per-job", "prog.py"]) == 0
    (folder,) = applications(world)
    done = details(JobId("ab" * 16), 9, JobStatus.CANCELED)
    world.end("application_1_0001", folder.rpartition("/")[2], FinalStatus.KILLED, done)
    world.yarn.change("application_1_0001", state=S.RUNNING)
    for verb in ("cancel", "stop"):
        assert main([verb, "-t", "yarn-per-job", "ab" * 16]) == 40
        assert "it is CANCELED already" in capsys.readouterr().err
    assert main(["info", "-t", "yarn-per-job", "ab" * 16]) == 0
    assert '"CANCELED"' in capsys.readouterr().out


def test_a_cluster_that_ends_before_it_answers_the_cancel(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["submit", "-d", "-t", "yarn-per-job", "prog.py"]) == 0
    (folder,) = applications(world)
    dispatcher = world.dispatchers["application_1_0001:1"]

    def cancel(job_id: JobId) -> None:
        done = details(job_id, 9, JobStatus.CANCELED)
        world.end("application_1_0001", folder.rpartition("/")[2], FinalStatus.KILLED, done)
        raise RpcUnavailable("gone")

    dispatcher.cancel_job = cancel  # type: ignore[method-assign]
    assert main(["cancel", "-t", "yarn-per-job", "ab" * 16]) == 0
    assert "Cancelled job" in capsys.readouterr().out


# --- sessions -----------------------------------------------------------------------


def test_start_list_stop(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["session", "list"]) == 0
    assert capsys.readouterr().out == "No sessions.\n"
    assert main(["session", "start", "-d", "-nm", "ours", "-s", "4"]) == 0
    out, err = capsys.readouterr()
    assert out == "application_1_0001\n" and "-Dyarn.application.id=application_1_0001" in err
    assert world.submitter.specs[0].name == "ours" and world.submitter.specs[0].task_manager.vcores == 4
    assert main(["session", "list"]) == 0
    assert "application_1_0001 : ours (RUNNING, queue default" in capsys.readouterr().out
    ending(world)
    assert main(["session", "stop"]) == 0
    assert capsys.readouterr().out == "Session application_1_0001 has ended.\n"


def ending(world: World) -> list[str]:
    """The session ends when it is told to."""
    told: list[str] = []
    dispatcher = world.dispatchers["application_1_0001:1"]

    def shut_down_cluster() -> None:
        told.append("shut down")
        world.yarn.change("application_1_0001", state=S.FINISHED)

    dispatcher.shut_down_cluster = shut_down_cluster  # type: ignore[method-assign]
    return told


def test_stop_refuses_while_jobs_live(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["session", "start", "-d"]) == 0
    told = ending(world)
    world.dispatchers["application_1_0001:1"].submissions.append(
        JobSubmission(job_id(1), "flights", ProgramKind.GRAPH, "{}", {})
    )
    assert main(["session", "stop", "application_1_0001"]) == 40
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"flights ({job_id(1)}, RUNNING)" in line and "--force" in line and told == []
    assert main(["session", "stop", "--force"]) == 0
    assert told == ["shut down"]


def test_stop_of_a_session_that_does_not_answer(world: World) -> None:
    assert main(["session", "start", "-d"]) == 0
    world.leave("application_1_0001:1")
    assert main(["session", "stop"]) == 72
    assert world.yarn.killed == []
    assert main(["session", "stop", "--force"]) == 0
    assert world.yarn.killed == ["application_1_0001"]


def test_stop_of_a_session_without_a_leader(world: World) -> None:
    def nobody_leads() -> Sequence[JobOverview]:
        raise LeadershipLost("ZooKeeper has no leader")

    assert main(["session", "start", "-d"]) == 0
    world.dispatchers["application_1_0001:1"].list_jobs = nobody_leads  # type: ignore[method-assign]
    assert main(["session", "stop"]) == 61
    assert world.yarn.killed == []
    assert main(["session", "stop", "--force"]) == 0
    assert world.yarn.killed == ["application_1_0001"]


def test_attached_start_ends_the_session_when_interrupted(world: World) -> None:
    def serve(application_id: str, deployment_id: str) -> None:
        dispatcher = world.serve(application_id, deployment_id)
        known = dispatcher.list_jobs

        def list_jobs() -> object:
            os.kill(os.getpid(), signal.SIGINT)
            return known()

        dispatcher.list_jobs = list_jobs  # type: ignore[method-assign,assignment]
        told.append(ending(world))

    told: list[list[str]] = []
    world.master = serve
    assert main(["session", "start"]) == 130
    assert told == [["shut down"]] and world.yarn.killed == []


def test_attach_leaves_the_session_alone(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["session", "start", "-d"]) == 0
    dispatcher = world.dispatchers["application_1_0001:1"]
    told = ending(world)
    looked = threading.Event()

    def list_jobs() -> list[object]:
        if looked.is_set():
            os.kill(os.getpid(), signal.SIGINT)
        looked.set()
        return []

    dispatcher.list_jobs = list_jobs  # type: ignore[method-assign,assignment]
    assert main(["session", "attach"]) == 130
    assert told == [] and world.yarn.killed == []


def test_attach_to_one_of_several(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.add("application_1_1", ONE, mode=M.SESSION)
    world.add("application_1_2", TWO, mode=M.SESSION)
    assert main(["session", "attach"]) == 82
    assert "application_1_1" in capsys.readouterr().err


def test_yarn_is_down(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.yarn.error = YarnUnavailable("no ResourceManager answers at h:1")
    for arguments in (["session", "list"], ["session", "start"], ["list", "-t", "yarn-session"]):
        assert main(arguments) == 81
        assert "error: no ResourceManager answers at h:1" in capsys.readouterr().err


def test_an_empty_id_of_a_session_is_no_session() -> None:
    """``session stop "$UNSET"`` must not end the only session there is."""
    from yarnflow.cli.session import _session
    from yarnflow.config.configuration import Configuration
    from yarnflow.errors import InvalidOption

    with pytest.raises(InvalidOption, match="id is empty"):
        _session(None, Configuration.empty(), "")  # type: ignore[arg-type]


def test_the_cluster_of_a_job_is_no_session(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    deployment_id = "0" * 16
    tags = ("yarnflow", "yarnflow-yarn-per-job", f"yarnflow-{deployment_id}")
    world.add("application_1_0009", deployment_id, tags=tags, name="job")
    assert main(["session", "stop", "--force", "application_1_0009"]) == 12
    assert "yarn-per-job, not a session" in capsys.readouterr().err
    assert world.yarn.killed == []


# --- without a word about the cluster -------------------------------------------------


@pytest.fixture
def hadoop(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine knows a YARN."""
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop/conf")


@pytest.mark.usefixtures("hadoop")
def test_a_job_on_yarn_needs_no_flag(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "-d", "-t", "yarn-per-job", "prog.py"]) == 0
    assert main(["session", "start", "-d"]) == 0
    capsys.readouterr()
    assert main(["list", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(job["job_id"], job["cluster"]) for job in document["jobs"]] == [
        ("ab" * 16, "application application_1_0001 (flights)")
    ]
    assert [cluster["target"] for cluster in document["clusters"]] == ["yarn-per-job", "yarn-session"]
    assert main(["info", "ab" * 16]) == 0
    assert main(["cancel", "ab" * 16]) == 0
    assert world.dispatchers["application_1_0001:1"].cancelled == ["ab" * 16]
    assert main(["cancel", "cd" * 16]) == 41
    assert "application_1_0001 (flights); application application_1_0002" in capsys.readouterr().err


@pytest.mark.usefixtures("hadoop")
def test_a_job_whose_jobmanager_has_just_gone_needs_none_either(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["submit", "-d", "-t", "yarn-per-job", "prog.py"]) == 0
    (folder,) = applications(world)
    done = details(JobId("ab" * 16), 9, JobStatus.CANCELED)
    world.end("application_1_0001", folder.rpartition("/")[2], FinalStatus.KILLED, done)
    world.yarn.change("application_1_0001", state=S.RUNNING)
    assert main(["cancel", "ab" * 16]) == 40
    assert "it is CANCELED already" in capsys.readouterr().err


@pytest.mark.usefixtures("hadoop")
@pytest.mark.parametrize(
    ("final", "status", "said"),
    [
        (FinalStatus.SUCCEEDED, 0, '"FINISHED"'),
        (FinalStatus.KILLED, 0, '"CANCELED"'),
        (FinalStatus.FAILED, 83, "ended FAILED: ValueError: bad"),
    ],
)
@pytest.mark.parametrize("by_id", [True, False])
def test_how_a_job_ended_that_took_its_cluster_along(
    world: World, final: FinalStatus, status: int, said: str, by_id: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["submit", "-d", "-t", "yarn-per-job", "prog.py"]) == 0
    (folder,) = applications(world)
    world.end(
        "application_1_0001", folder.rpartition("/")[2], final, diagnostics="ValueError: bad", written=False
    )
    named = ["-Dyarn.application.id=application_1_0001"] if by_id else []
    assert main(["info", *named, "ab" * 16]) == status
    assert said in "".join(capsys.readouterr())
    assert main(["info", "cd" * 16]) == 41


@pytest.mark.usefixtures("hadoop")
def test_applications_that_do_not_answer_are_notes_of_the_list(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["session", "start", "-d"]) == 0
    assert main(["session", "start", "-d"]) == 0
    world.dispatchers["application_1_0002:1"].down = RpcUnavailable("nobody listens")
    capsys.readouterr()
    assert main(["list"]) == 0
    out, err = capsys.readouterr()
    assert "No running jobs." in out
    assert err == (
        "Dashboard: http://jm:8081 (application application_1_0001 (yarnflow session))\n"
        "note: application application_1_0002 (yarnflow session): nobody listens\n"
    )
    world.dispatchers["application_1_0001:1"].down = RpcUnavailable("nobody listens")
    assert main(["list"]) == 72
    assert "no cluster of this user answers: application" in capsys.readouterr().err


def test_a_list_of_a_target_shows_all_of_its_applications(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", "-t", "yarn-session"]) == 82
    assert main(["session", "start", "-d"]) == 0
    assert main(["session", "start", "-d"]) == 0
    for number in (1, 2):
        world.dispatchers[f"application_1_000{number}:1"].submissions.append(
            JobSubmission(job_id(number), "flights", ProgramKind.GRAPH, "{}", {})
        )
    capsys.readouterr()
    assert main(["list", "-t", "yarn-session"]) == 0
    out = capsys.readouterr().out
    for number in (1, 2):
        where = f"on application application_1_000{number}"
        assert f"{job_id(number)} : flights (RUNNING, 1/1 slots) {where}" in out
    # a job says which one is meant
    assert main(["cancel", "-t", "yarn-session", job_id(2)]) == 0
    capsys.readouterr()
    assert main(["list", "-yid", "application_1_0001", "--json"]) == 0
    assert [job["job_id"] for job in json.loads(capsys.readouterr().out)["jobs"]] == [job_id(1)]


def test_what_yarn_has(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["session", "start", "-q"]) == 0
    out = capsys.readouterr().out
    assert "16,384 of 16,384 MiB free, largest container 8,192 MiB" in out and "root.default (RUNNING" in out
    assert main(["session", "start", "-q", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["limits"]["total_vcores"] == 16 and document["queues"][0]["state"] == "RUNNING"
    assert world.submitter.specs == []


def test_a_session_as_yarn_session_starts_it(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["-jm", "1024", "-tm", "4096", "-s", "2", "-at", "Flink", "-j", "flink.jar"]
    assert main(["session", "start", "-d", *flags, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"application_id": "application_1_0001", "web_address": "http://w:1"}
    assert "-at of Flink changes nothing here" in err and "-j of Flink changes nothing here" in err
    (spec,) = world.submitter.specs
    assert spec.task_manager.memory_mib == 4096 and spec.task_manager.vcores == 2
    assert main(["session", "start", "--json"]) == 2
