"""Every bad input: one line, the right exit status.  And the good ones."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.fakes import FakeConnection
from tests.client.jars.test_files import jar
from yarnflow.cli.configuration import load_configuration
from yarnflow.cli.main import main
from yarnflow.client import targets
from yarnflow.config.options.cluster import LOG_CONFIG_FILE
from yarnflow.core.messages import ErrorInfo
from yarnflow.core.states import JobStatus
from yarnflow.entrypoint.standalone import prepare as cds
from yarnflow.errors import DuplicateJob, InvalidTransition, JavaUnavailable, RpcUnavailable
from yarnflow.process.signals import ENDING
from yarnflow.testing.gateways.dispatcher import FakeDispatcher

S = JobStatus

PROGRAM = """
import sys
from yarnflow.api.executor import current_executor
from yarnflow.graph.job_graph import JobGraph
from yarnflow.core.messages import ProgramKind
print("in the program", sys.argv[1:])
client = current_executor().submit(JobGraph("ab" * 16, "flights", ProgramKind.GRAPH))
client.get_job_execution_result()
print("after")
"""


@pytest.fixture(autouse=True)
def interpreter(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import signal

    monkeypatch.delenv("YARNFLOW_CONF_DIR", raising=False)
    main_module, argv, path = sys.modules["__main__"], sys.argv, list(sys.path)
    handlers = {number: signal.getsignal(number) for number in ENDING}
    yield
    sys.modules["__main__"], sys.argv, sys.path[:] = main_module, argv, path
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def dispatcher(monkeypatch: pytest.MonkeyPatch) -> FakeDispatcher:
    """The cluster behind both targets."""
    fake = FakeDispatcher()
    connections: list[FakeConnection] = []

    def connect(target: targets.Target, configuration: object, *_: object) -> FakeConnection:
        connections.append(FakeConnection(fake, target.owned))
        return connections[-1]

    monkeypatch.setattr(targets.Target, "connect", connect)
    fake.connections = connections  # type: ignore[attr-defined]
    return fake


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "prog.py"
    path.write_text(PROGRAM)
    return path


def _errors(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (["sumbit"], 2, "did you mean submit?"),
        (["submit"], 2, "missing PROGRAM"),
        (["submit", "--paralelism", "2", "x.py"], 2, "--parallelism"),
        (["submit", "-p", "zero", "x.py"], 2, "zero"),
        (["submit", "-p", "0", "x.py"], 2, "0"),
        (["submit", "/none/x.py"], 21, "/none/x.py does not exist"),
        (["submit", "-t", "locl", "{program}"], 12, "did you mean local?"),
        (["submit", "-t", "kubernetes", "{program}"], 12, "Known: local"),
        (["submit", "-D", "paralelism.default=2", "{program}"], 11, "parallelism.default"),
        (["submit", "-Dparallelism.default=x", "{program}"], 12, "parallelism.default"),
        (["submit", "-Dparallelism.default", "{program}"], 10, "expected -Dkey=value"),
        (["submit", "-D", "=x", "{program}"], 10, "-D=x: expected -Dkey=value"),
        (["submit", "{directory}"], 21, "is a directory"),
        (["submit", "{nothing}"], 23, "has no statements"),
        (["info", "{nothing}"], 23, "has no statements"),
        (["submit", "{unreadable}"], 21, "cannot be read: Permission denied"),
        (["submit", "elsewhere.py"], 21, "elsewhere.py does not exist (looked in "),
        (["submit", "{late}"], 24, "RuntimeError: after the job"),
        (["submit", "-t", "remote", "-Dtaskmanager.memory.process.size=2g", "{program}"], 12, "TaskManagers"),
        (["submit", "-m", "h:1", "-D", "heartbeat.timeout=60s", "{script}"], 12, "heartbeat.timeout (-D)"),
        (["submit", "-m", "nowhere", "{program}"], 12, "expected host:port"),
        (["submit", "-m", "h:99999", "{program}"], 12, "99999 is no port"),
        (["submit", "-d", "{program}"], 12, "cannot be detached"),
        (["submit", "-pyfs", "/none.py", "{script}"], 21, "/none.py"),
        (["submit", "-pym", "job"], 12, "-pym job needs -pyfs"),
        (["submit", "-pym", "job", "-pyfs", "{directory}"], 21, "module job (-pym) is in no directory of"),
        (["submit", "-pym", "inside", "-pyfs", "{directory}"], 12, "imports relative to its package"),
        (["submit", "-pym", "job", "-py", "{program}"], 12, "-py and -pym both name the program"),
        (["submit", "-pyclientexec", "/none/python", "{program}"], 12, "main() runs in the Python that runs"),
        (["submit", "-cm", "legacy", "{program}"], 2, "legacy"),
        (["submit", "-yt", "/none", "{program}"], 12, "/none is no directory"),
        (["run", "-pyreq", "r.txt", "-py", "{program}"], 2, "yarnflow env pack"),
        (["info", "-c", "Job", "{program}"], 2, "-c of Flink is not here"),
        (["submit", "--jars", "/none.jar", "{script}"], 13, "jar /none.jar does not exist; check the path"),
        (["submit", "-Dpipeline.jars=/none.jar", "{program}"], 13, "jar /none.jar does not exist"),
        (["submit", "--packages", "g:a", "{script}"], 13, "'g:a' is not of the form group:artifact:version"),
        (["submit", "--packages", "g:a:1,g:a:2", "{script}"], 13, "g:a:1 and g:a:2; keep one of them"),
        (["submit", "--packages", "g:a_2.12:1", "{script}"], 13, "made for Scala 2.12"),
        (["cancel", "12"], 41, "is not a job id"),
        (["cancel"], 2, "JOB"),
        (["list", "-t", "local"], 72, "no local cluster of this user runs"),
        (["cancel", "-t", "local", "ab" * 16], 41, "no local cluster of this user runs"),
        (["info", "/none/x.py"], 21, "does not exist"),
        (["info", "{empty}"], 23, "without calling execute()"),
        (["submit", "{empty}"], 23, "no job was submitted"),
        (["submit", "{broken}"], 22, "line 1"),
        (["submit", "{raising}"], 24, "ValueError: bad luck"),
        (["submit", "{bug}", "--verbose"], 24, "ZeroDivisionError"),
    ],
)
def test_bad_input(
    arguments: list[str],
    status: int,
    text: str,
    tmp_path: Path,
    program: Path,
    dispatcher: FakeDispatcher,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = {
        "program": PROGRAM,
        "script": "print(1)",
        "empty": "import yarnflow",
        "broken": "def",
        "raising": "import yarnflow\nraise ValueError('bad luck')",
        "bug": "import yarnflow\n1/0",
        "nothing": "# nothing but a comment\n",
        "unreadable": "print(1)",
        "inside": "from . import beside",
        "late": PROGRAM + "raise RuntimeError('after the job')",
    }
    for name, content in files.items():
        (tmp_path / f"{name}.py").write_text(content)
    paths = {name: tmp_path / f"{name}.py" for name in files}
    read_bytes = Path.read_bytes

    def read(path: Path) -> bytes:
        # file modes are nothing to the super-user that tests may run as
        if path.name == "unreadable.py":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    filled = [argument.format(directory=tmp_path, **paths) for argument in arguments]
    assert main(filled) == status
    (line,) = _errors(capsys)
    assert text in line
    assert all(connection.stops for connection in dispatcher.connections)  # type: ignore[attr-defined]


def test_submit_waits_and_keeps_its_own_words_off_standard_output(
    program: Path, dispatcher: FakeDispatcher, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["submit", "-p", "2", str(program), "-p", "x", "--verbose"]) == 0
    out, err = capsys.readouterr()
    assert out == "in the program ['-p', 'x', '--verbose']\nafter\n"
    assert err.splitlines() == [
        f"Job flights has been submitted with JobID {'ab' * 16}.",
        f"Dashboard: http://jm:8081/#/job/{'ab' * 16}",
        f"Job flights ({'ab' * 16}) switched from state CREATED to RUNNING.",
        f"Job flights ({'ab' * 16}) switched from state RUNNING to FINISHED.",
    ]
    assert dispatcher.submissions[0].configuration["parallelism.default"] == "2"
    (connection,) = dispatcher.connections  # type: ignore[attr-defined]
    assert connection.stops == [(False, False)]


@pytest.mark.parametrize("verb", [["run"], ["submit", "-py"], ["run", "--python"]])
def test_flink_habits(verb: list[str], program: Path, dispatcher: FakeDispatcher) -> None:
    assert main([*verb, str(program)]) == 0


def test_failed_job(
    program: Path, dispatcher: FakeDispatcher, capsys: pytest.CaptureFixture[str]
) -> None:
    dispatcher.states = [S.RUNNING, S.FAILED]
    dispatcher.error = ErrorInfo("USER_CODE", "ValueError: 'x' in map()", "Traceback:\n  File prog.py")
    assert main(["submit", str(program)]) == 45
    err = capsys.readouterr().err.splitlines()
    assert err[-3:-1] == ["Traceback:", "  File prog.py"]
    assert err[-1].startswith("error: job flights") and err[-1].endswith("ValueError: 'x' in map()")
    assert "Logs are in /kept/logs" in err


def test_refused_submission(
    program: Path, dispatcher: FakeDispatcher, capsys: pytest.CaptureFixture[str]
) -> None:
    dispatcher.raise_on_submit = DuplicateJob("job key k is taken")
    assert main(["submit", "--job-key", "k", str(program)]) == 42
    assert _errors(capsys) == ["error: job key k is taken"]


def test_detached_remote(program: Path, dispatcher: FakeDispatcher) -> None:
    dispatcher.states = [S.RUNNING]
    assert main(["submit", "-d", "-m", "host:6123", str(program)]) == 0


def test_script_is_shipped_not_run(tmp_path: Path, dispatcher: FakeDispatcher) -> None:
    script = tmp_path / "script.py"
    script.write_text("raise SystemExit('must not run here')")
    assert main(["submit", "-p", "3", "--name", "count", str(script), "arg"]) == 0
    submission = dispatcher.submissions[0]
    assert submission.script_argv == ("script.py", "arg") and submission.name == "count"


def test_jars_and_packages_of_spark_submit(tmp_path: Path, dispatcher: FakeDispatcher) -> None:
    own = jar(tmp_path / "own.jar")
    script = tmp_path / "script.py"
    script.write_text("import pyspark")
    flags = ["--jars", f"{own},hdfs://n/x.jar", "--repositories", "https://r", "--exclude-packages", "g:z"]
    assert main(["submit", *flags, str(script)]) == 0
    options = dispatcher.submissions[0].configuration
    assert options["spark.jars"] == f"file://{own},hdfs://n/x.jar"
    assert (options["spark.jars.repositories"], options["spark.jars.excludes"]) == ("https://r", "g:z")


def test_jars_of_flinks_command_line(tmp_path: Path, dispatcher: FakeDispatcher) -> None:
    own = jar(tmp_path / "own.jar")
    script = tmp_path / "script.py"
    script.write_text("import pyspark")
    flags = ["-j", str(own), "-C", "file:///x.jar", "-C", "file:///y.jar"]
    assert main(["run", *flags, "-py", str(script)]) == 0
    options = dispatcher.submissions[0].configuration
    assert options["spark.jars"] == f"file://{own},local:/x.jar,local:/y.jar"


def test_interrupt_in_the_program(tmp_path: Path, dispatcher: FakeDispatcher) -> None:
    path = tmp_path / "prog.py"
    path.write_text("import yarnflow\nraise KeyboardInterrupt")
    assert main(["submit", str(path)]) == 130
    path.write_text(
        "import yarnflow, os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(30)"
    )
    assert main(["submit", str(path)]) == 143
    assert [c.stops for c in dispatcher.connections] == [[(True, False)]] * 2  # type: ignore[attr-defined]


def test_programs_own_exit_status(tmp_path: Path, dispatcher: FakeDispatcher) -> None:
    path = tmp_path / "prog.py"
    path.write_text("import yarnflow, sys\nsys.exit(7)")
    assert main(["submit", str(path)]) == 7
    path.write_text("import yarnflow, argparse\nargparse.ArgumentParser().parse_args()")
    assert main(["submit", str(path), "--help"]) == 0
    path.write_text("import yarnflow, sys\nsys.exit(0)")
    assert main(["submit", str(path)]) == 23


def test_internal_error(
    program: Path, dispatcher: FakeDispatcher, capsys: pytest.CaptureFixture[str]
) -> None:
    dispatcher.raise_on_submit = TypeError("a bug")  # type: ignore[assignment]
    program.write_text("print(1)")
    assert main(["submit", str(program)]) == 90
    assert _errors(capsys) == [
        "error: internal error: TypeError: a bug; run again with --verbose and report what it prints"
    ]


def test_bug_that_has_a_class_is_to_be_reported(
    program: Path, dispatcher: FakeDispatcher, capsys: pytest.CaptureFixture[str]
) -> None:
    dispatcher.raise_on_submit = InvalidTransition("job x: RUNNING does not allow started")
    assert main(["submit", str(program)]) == 91
    assert _errors(capsys) == [
        "error: job x: RUNNING does not allow started; "
        "this is a bug in yarnflow, please report it with this line and the logs"
    ]


def test_program_of_another_directory(
    tmp_path: Path,
    dispatcher: FakeDispatcher,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "beside_it.py").write_text("WORD = 'beside'")
    (tmp_path / "there" / "prog.py").write_text("from beside_it import WORD\nprint(WORD)\n" + PROGRAM)
    monkeypatch.chdir(tmp_path / "here")
    assert main(["submit", "../there/prog.py"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "beside"


def test_what_python_m_yarnflow_says_is_the_default_only(
    tmp_path: Path, program: Path, dispatcher: FakeDispatcher
) -> None:
    script = tmp_path / "script.py"
    script.write_text("from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate()\n")
    program.write_text(
        "from pyflink.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_collection([1]).print()\nenv.execute()\n"
    )
    for path in (program, script):
        assert main(["submit", "--default-parallelism=3", str(path)]) == 0
        assert main(["submit", "--default-parallelism=3", "-p", "2", str(path)]) == 0
    told = [submission.configuration["parallelism.default"] for submission in dispatcher.submissions]
    assert told == ["3", "2", "3", "2"]


def test_clusters_options_of_the_file_are_no_mistake_of_the_command(
    tmp_path: Path, program: Path, dispatcher: FakeDispatcher
) -> None:
    (tmp_path / "yarnflow-conf.yaml").write_text("heartbeat.timeout: 60 s\n")
    assert main(["submit", "-t", "remote", "--conf-dir", str(tmp_path), "-p", "2", str(program)]) == 0
    assert dispatcher.submissions[0].configuration == {"parallelism.default": "2"}
    address = ("-Djobmanager.rpc.address=h", "-Djobmanager.rpc.port=1", "-Drpc.ask.timeout=3s")
    assert main(["submit", "-t", "remote", *address, str(program)]) == 0
    assert main(["submit", "-Dtaskmanager.memory.process.size=2g", str(program)]) == 0


def test_info_prints_the_plan(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(program)]) == 0
    captured = capsys.readouterr()
    # what the program prints before its execute() is not in the way of who reads the plan
    assert json.loads(captured.out)["name"] == "flights"
    assert "after" not in captured.err.splitlines()


def test_info_finds_modules_that_are_shipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "of_the_company").mkdir()
    (tmp_path / "of_the_company" / "__init__.py").write_text("")
    program = tmp_path / "jobs" / "job.py"
    program.write_text("import of_the_company\n" + PROGRAM)
    assert main(["info", str(program)]) == 24
    assert main(["info", "-pyfs", str(tmp_path), str(program)]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "flights"


@pytest.mark.parametrize("text", ["print('no')", "print('yes')\nexec('import pyspark')\nprint('no')"])
def test_info_of_a_script(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.py").write_text(text)
    assert main(["info", "-p", "5", str(tmp_path / "s.py")]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["required_slots"] == 5
    assert captured.err.splitlines() == (["yes"] if "yes" in text else [])


def test_list_info_and_cancel(
    program: Path, dispatcher: FakeDispatcher, capsys: pytest.CaptureFixture[str]
) -> None:
    dispatcher.states = [S.RUNNING]
    job = "ab" * 16
    assert main(["list"]) == 0
    assert capsys.readouterr().out == "No running jobs.\nNo scheduled jobs.\n"
    main(["submit", "-d", "-t", "remote", str(program)])
    capsys.readouterr()
    assert main(["list", "-r"]) == 0
    assert f" : {job} : flights (RUNNING, 1/1 slots)" in capsys.readouterr().out
    assert main(["info", job]) == 0
    assert json.loads(capsys.readouterr().out)["overview"]["status"] == "RUNNING"
    assert main(["cancel", job]) == 0
    assert capsys.readouterr().out == f"Cancelling job {job}.\nCancelled job {job}.\n"
    assert main(["cancel", job]) == 40
    assert main(["cancel", "0" * 32]) == 41


@pytest.mark.parametrize("arguments", [["version"], ["--version"]])
def test_version(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    assert capsys.readouterr().out.startswith("yarnflow 0.")


def test_help_lists_all_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(verb in out for verb in ("submit", "info", "list", "cancel", "jobmanager", "taskmanager"))


def test_help_imports_no_verb() -> None:
    import subprocess

    code = (
        "import sys, io; from yarnflow.cli.main import main; main(['--help'])\n"
        "heavy = {'rich', 'thrift', 'pyspark', 'pyarrow', 'yaml', 'sqlglot', 'yarnflow.cli.submit'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    root = str(Path(__file__).parents[2])
    out = subprocess.check_output([sys.executable, "-c", code], cwd=root, text=True)
    assert out.splitlines()[-1] == "[]"


def test_log_yaml_of_the_conf_dir_is_an_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "yarnflow-conf.yaml").write_text("parallelism.default: 3\n")
    assert not load_configuration(tmp_path, ()).is_set(LOG_CONFIG_FILE)
    (tmp_path / "log.yaml").write_text("version: 1\n")
    assert load_configuration(tmp_path, ()).get(LOG_CONFIG_FILE) == str(tmp_path / "log.yaml")
    monkeypatch.setenv("YARNFLOW_CONF_DIR", str(tmp_path))
    assert load_configuration(None, ()).get(LOG_CONFIG_FILE) == str(tmp_path / "log.yaml")
    assert load_configuration(None, ("yarnflow.log.config-file=x",)).get(LOG_CONFIG_FILE) == "x"


@pytest.mark.parametrize(("made", "said"), [(True, "made in /c"), (False, "are there already")])
def test_prepare_makes_archives(
    made: bool, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cds, "make_archives", lambda: (made, Path("/c")))
    assert main(["prepare"]) == 0
    assert said in capsys.readouterr().out


def test_prepare_without_java_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def find_java() -> None:
        raise JavaUnavailable("no java; install 17 or newer")

    monkeypatch.setattr(cds, "find_java", find_java)
    assert main(["prepare"]) == JavaUnavailable.exit_code
    assert _errors(capsys) == ["error: no java; install 17 or newer"]


def test_a_cluster_that_is_not_here_may_be_on_yarn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", f"-Dio.tmp.dirs={tmp_path}"]) == RpcUnavailable.exit_code
    (line,) = _errors(capsys)
    assert "no standalone cluster" in line and "-t yarn-per-job" in line


def test_what_a_target_needs_is_imported_when_it_is_used() -> None:
    code = (
        "import sys\n"
        "from yarnflow.cli.targets import find_target\n"
        "find_target('local'), find_target('yarn-session')\n"
        "heavy = ('yarnflow.entrypoint', 'yarnflow.rpc', 'yarnflow.client.yarn', 'skein', 'thrift')\n"
        "print([name for name in sys.modules if name.startswith(heavy)])"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_an_older_key_is_a_line_on_standard_error(
    dispatcher: FakeDispatcher, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["submit", "-Drestart-strategy=fixeddelay", str(program)]) == 0
    err = capsys.readouterr().err.splitlines()
    assert err[0] == (
        "warning: restart-strategy (-D) is an older key of restart-strategy.type; write that instead"
    )
    assert sum("older key" in line for line in err) == 1
    assert dispatcher.submissions[0].configuration == {"restart-strategy.type": "fixeddelay"}
