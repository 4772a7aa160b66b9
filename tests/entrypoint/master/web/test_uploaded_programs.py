"""What the processes of uploaded programs are told, and what their ends mean."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import client, cluster, job
from yarnflow.entrypoint.master.web.uploaded_programs import UploadedPrograms, upload_directory
from yarnflow.errors import NoExecuteCall, ProgramFailed, UnknownOption, YarnflowError
from yarnflow.process.spawn import ProcessSpec
from yarnflow.rest.framework.errors import RestError
from yarnflow.rest.programs.running import ProgramRun

JOB = "a" * 32
SUBMITTED = {"jobs": [{"job_id": JOB, "name": "n", "status": "CREATED"}], "target": "remote"}


@dataclass
class Process:
    """A command that has said something and ended, or (None) goes on."""

    said: str = ""
    output: str = ""
    status: int | None = 0
    spec: ProcessSpec = field(default_factory=lambda: ProcessSpec("", ()))
    kills: int = 0

    def __call__(self, spec: ProcessSpec) -> Process:
        self.spec = spec
        assert spec.stdout_fd is not None
        os.write(spec.stdout_fd, self.said.encode())
        return self

    def __hash__(self) -> int:
        return id(self)

    @property
    def pid(self) -> int:
        return 1

    @property
    def alive(self) -> bool:
        return self.status is None

    def on_exit(self, listener: Callable[[int], None]) -> None: ...

    def wait(self, timeout_s: float | None = None) -> int | None:
        return self.status

    def write_line(self, line: str) -> bool:
        return False

    def terminate_group(self, grace_s: float = 5.0) -> int | None:
        return None

    def kill_group(self) -> None:
        self.kills += 1

    def output_tail(self, lines: int = 20) -> str:
        return self.output


def program(directory: Path, file_name: str = "job.py", **asked: object) -> ProgramRun:
    made = ProgramRun(directory, "1-job.py", file_name, "job", **asked)  # type: ignore[arg-type]
    made.sources.mkdir(parents=True)
    return made


def runner(process: Process) -> UploadedPrograms:
    configuration = Configuration.from_dict({"security.cluster-secret-file": "/s"}, "test")
    return UploadedPrograms(configuration, lambda: "host:1234", 5_000, process)


def test_a_file_is_submitted_to_this_master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARNFLOW_CONF_EXECUTION_TARGET", "local")
    monkeypatch.setenv("KEPT", "1")
    process = Process(json.dumps(SUBMITTED))
    asked = program(
        tmp_path,
        arguments=("--x", "y z"),
        options={"parallelism.default": "3", "execution.target": "yarn-session"},
        savepoint_path="-sp",
        claim_mode="CLAIM",
        allow_non_restored=True,
    )
    assert runner(process).run(asked) == JOB
    command = process.spec.command
    assert command[1:5] == ("-P", "-m", "yarnflow.cli", "submit")
    assert command[7:] == (
        "--json", "-d", "--program-location", "upload:1-job.py:job",
        "--from-savepoint=-sp", "--claim-mode", "CLAIM", "--allow-non-restored-state",
        str(tmp_path / "program" / "job.py"), "--x", "y z",
    )  # fmt: skip
    assert process.spec.cwd == tmp_path / "program"
    # its file of options is all that it hears of options
    assert process.spec.whole_environment and process.spec.environment["KEPT"] == "1"
    assert "YARNFLOW_CONF_EXECUTION_TARGET" not in process.spec.environment
    options = Configuration.load(Path(command[6]), {}, [])
    assert options.get(client.TARGET) == "remote" and not options.get(client.ATTACHED)
    assert (options.get(cluster.JOBMANAGER_RPC_ADDRESS), options.get(cluster.JOBMANAGER_RPC_PORT)) == (
        "host",
        "1234",
    )
    assert options.get(job.PARALLELISM_DEFAULT) == 3
    assert (tmp_path / "conf" / "yarnflow-conf.yaml").stat().st_mode & 0o077 == 0


def test_arguments_of_a_module_are_no_flags_of_the_command(tmp_path: Path) -> None:
    process = Process(json.dumps(SUBMITTED))
    runner(process).run(program(tmp_path, "", arguments=("-p", "9")))
    assert process.spec.command[11:] == ("-pyfs", str(tmp_path / "program"), "-pym", "job", "--", "-p", "9")


def test_a_plan_as_jobs_are_described(tmp_path: Path) -> None:
    from yarnflow.api import StreamExecutionEnvironment
    from yarnflow.api.executor import GraphCollector, ProgramAborted, use_executor
    from yarnflow.client.executor import graph_submission
    from yarnflow.graph.plan import plan_json
    from yarnflow.runtime.dispatcher.describing import describe_job

    collector = GraphCollector()
    with pytest.raises(ProgramAborted), use_executor(collector, {}):
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_collection(["a"]).key_by("value").count().print()
        env.execute("planned")
    (graph,) = collector.graphs
    made = runner(Process(plan_json(graph))).plan(program(tmp_path))
    described = describe_job(
        graph_submission(graph, configuration={}), graph, Configuration.from_dict({}, "test")
    )
    assert (made.job_id, made.name, made.batch) == (graph.job_id, "planned", described.batch)
    assert made.nodes == described.nodes and len(made.nodes) == 2


def failed(code: str, status: int, **more: str) -> Process:
    error = {"error": {"code": code, "message": "why", "exit_status": status, "retryable": False, **more}}
    return Process(output=f"a note\n{json.dumps(error)}", status=status)


@pytest.mark.parametrize(
    "process, expected",
    [
        (failed("PROGRAM_FAILED", 24, details="Traceback\nValueError"), ProgramFailed),
        (failed("NO_EXECUTE_CALL", 23), NoExecuteCall),
        (failed("OF_A_LATER_VERSION", 99), YarnflowError),
    ],
)
def test_what_a_command_says_went_wrong(
    process: Process, expected: type[YarnflowError], tmp_path: Path
) -> None:
    with pytest.raises(expected) as caught:
        runner(process).run(program(tmp_path))
    if isinstance(caught.value, ProgramFailed):
        assert caught.value.traceback_text == "Traceback\nValueError"


@pytest.mark.parametrize("output", ["killed", "", "[1]", '{"error": 3}', '{"error": {}}'])
def test_a_command_that_says_nothing_of_use(output: str, tmp_path: Path) -> None:
    with pytest.raises(RestError, match="signal 9") as caught:
        runner(Process(output=output, status=-9)).run(program(tmp_path))
    assert (caught.value.status, caught.value.details) == (400, output)


def test_a_program_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    process = Process(status=None, output="line 1\nline 2")
    with pytest.raises(RestError, match="5000 ms .web.submit.timeout") as caught:
        runner(process).run(program(tmp_path))
    assert (caught.value.status, caught.value.details, process.kills) == (504, "line 1\nline 2", 1)


def test_an_unknown_option_starts_nothing(tmp_path: Path) -> None:
    process = Process(json.dumps(SUBMITTED))
    with pytest.raises(UnknownOption):
        runner(process).run(program(tmp_path, options={"taskmanger.slots": "1"}))
    assert process.spec.command == ()


def test_nothing_is_started_after_the_end(tmp_path: Path) -> None:
    process = Process(json.dumps(SUBMITTED))
    programs = runner(process)
    programs.stop()
    with pytest.raises(RestError, match="about to end"):
        programs.run(program(tmp_path))
    assert process.spec.command == ()


def test_where_programs_are_kept(tmp_path: Path) -> None:
    assert upload_directory("", tmp_path) == tmp_path / "uploads"
    assert upload_directory("/shared", tmp_path) == Path("/shared/flink-web-upload")
