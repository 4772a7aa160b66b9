"""Wrong input: one line with what, where and what to do; an exit status of its own; nothing left running.

What is refused before there is a cluster is tried in this process.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration.conftest import MARK, Commands, Started, marked_processes, wait_until
from integration.database_servers import PostgreSql
from integration.living_files import files_below
from integration.servers import free_port, running
from tests.patience import PATIENCE
from yarnflow import errors
from yarnflow.cli.main import main
from yarnflow.process.signals import ENDING

HEADER = """
from yarnflow.api import *
env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_collection([(1, "a"), (2, "b")], "number INT, word STRING")
"""


def _program(directory: Path, text: str, header: str = HEADER) -> Path:
    path = directory / "program.py"
    path.write_text(header + text)
    return path


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    status: int
    stdout: str
    stderr: str

    @classmethod
    def of(cls, process: Started) -> Ended:
        """One that ran in a process of its own."""
        return cls(process.process.returncode, process.stdout, process.stderr)


#: runs ``yarnflow submit`` with these arguments
Submit = Callable[..., Ended]


@pytest.fixture
def submit(
    as_it_was: None,
    yarnflow: Commands,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Submit]:
    """Run a submit in this process, which it leaves as it was; it must not start another one."""
    clusters = tmp_path / "clusters"
    monkeypatch.setenv(MARK, yarnflow.mark)
    monkeypatch.setenv("YARNFLOW_CONF_IO_TMP_DIRS", str(clusters))
    monkeypatch.chdir(tmp_path)
    handlers = {number: signal.getsignal(number) for number in ENDING}

    def run(*arguments: str | Path) -> Ended:
        capsys.readouterr()
        status = main(["submit", *map(str, arguments)])
        started = marked_processes(yarnflow.mark)
        assert not started and not clusters.exists(), f"a cluster was started: {started}"
        return Ended(status, *capsys.readouterr())

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def submit_remote(submit: Submit, tmp_path: Path) -> Submit:
    """Run a submit to a standalone cluster that is not there: asking it for anything is another error."""
    secret = tmp_path / "secret"
    secret.write_text("0" * 64 + "\n")
    secret.chmod(0o600)
    options = ("-m", f"127.0.0.1:{free_port()}", f"-Dsecurity.cluster-secret-file={secret}")
    return lambda *arguments: submit(*options, *arguments)


def _expect(done: Ended, error: type[errors.YarnflowError], *parts: str) -> None:
    assert done.status == error.exit_code, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(lines) == 1, done.stderr
    for part in parts:
        assert part in lines[0]
    assert "Traceback" not in done.stderr, "a traceback of ours was shown"


@pytest.mark.gate
def test_missing_program(submit: Submit) -> None:
    _expect(submit("nowhere.py"), errors.ProgramNotFound, "nowhere.py")


@pytest.mark.gate
def test_syntax_error(submit: Submit, tmp_path: Path) -> None:
    done = submit(_program(tmp_path, "env.execute("))
    _expect(done, errors.ProgramSyntaxError, "program.py, line 5")


@pytest.mark.gate
def test_unknown_option(submit: Submit, tmp_path: Path) -> None:
    done = submit("-Dparalellism.default=2", _program(tmp_path, "numbers.print(); env.execute()"))
    _expect(done, errors.UnknownOption, "parallelism.default")


@pytest.mark.gate
def test_unknown_target(submit: Submit, tmp_path: Path) -> None:
    done = submit("--target", "lokal", _program(tmp_path, "numbers.print(); env.execute()"))
    _expect(done, errors.InvalidOption, "lokal", "local")


@pytest.mark.gate
def test_no_execute(yarnflow: Commands, tmp_path: Path) -> None:
    """The program runs while its local cluster starts, which ends with it."""
    done = Ended.of(yarnflow.run("submit", _program(tmp_path, "numbers.print()")))
    _expect(done, errors.NoExecuteCall, "execute")


@pytest.mark.gate
def test_unserialisable_function(submit_remote: Submit, tmp_path: Path) -> None:
    program = _program(
        tmp_path,
        "import threading\nlock = threading.Lock()\n"
        "numbers.map(lambda row: lock and row.number, output_type=int).print()\nenv.execute()\n",
    )
    _expect(submit_remote(program), errors.UnserializableFunction, "lock", "program.py:")


@pytest.mark.gate
def test_wrong_column(submit_remote: Submit, tmp_path: Path) -> None:
    program = _program(tmp_path, "numbers.select('numbr + 1 AS n').print()\nenv.execute()\n")
    _expect(submit_remote(program), errors.UnknownField, "program.py:5", "numbr", "number")


@pytest.mark.gate
def test_parallelism_above_maximum(submit_remote: Submit, tmp_path: Path) -> None:
    program = _program(tmp_path, "numbers.print()\nenv.execute()\n")
    done = submit_remote("-p", "9", "-Dpipeline.max-parallelism=4", program)
    _expect(done, errors.ParallelismTooHigh, "9", "4")


@pytest.mark.gate
def test_user_function_that_raises(yarnflow: Commands, tmp_path: Path) -> None:
    program = _program(
        tmp_path,
        "def halve(row):\n    return row.number / (row.number - 2)\n\n"
        "numbers.map(halve, output_type=float).print()\nenv.execute()\n",
    )
    done = yarnflow.run("submit", program)
    assert done.process.returncode in (errors.UserCodeError.exit_code, errors.JobFailed.exit_code)
    text = done.stderr
    assert "ZeroDivisionError" in text and "in halve" in text
    assert "org.apache.spark" not in text, "Java was shown to a Python user"
    assert text.index("Traceback") < text.index("error:"), "the user's traceback comes first"


def test_source_path_that_is_not_there(yarnflow: Commands, tmp_path: Path) -> None:
    program = _program(
        tmp_path,
        "from yarnflow.api import FileSource\n"
        "env.from_source(FileSource('/no/such/place', 'csv', 'a INT')).print()\nenv.execute()\n",
        HEADER.rsplit("numbers", 1)[0],
    )
    _expect(Ended.of(yarnflow.run("submit", program)), errors.SourceNotFound, "/no/such/place")


def test_wrong_password_of_a_database(yarnflow: Commands, tmp_path: Path) -> None:
    program = _program(
        tmp_path,
        "import sys\n"
        "from yarnflow.api.common.typeinfo import Types\n"
        "from yarnflow.api.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink\n"
        "made = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(sys.argv[1])\n"
        "connection = made.with_user_name('yarnflow').with_password('hunter2').build()\n"
        "kind = Types.ROW_NAMED(['number', 'word'], [Types.INT(), Types.STRING()])\n"
        "insert = 'INSERT INTO numbers VALUES (?, ?)'\n"
        "numbers.add_sink(JdbcSink.sink(insert, kind, connection))\nenv.execute()\n",
    )
    with running(PostgreSql) as server:
        done = Ended.of(yarnflow.run("submit", program, server.url))
        _expect(done, errors.DatabaseError, server.url, "password authentication failed", "(program.py:12)")
        assert "hunter2" not in done.stderr + done.stdout


@pytest.mark.gate
def test_package_for_another_scala(submit: Submit, tmp_path: Path) -> None:
    package = "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.1"
    program = _program(tmp_path, "numbers.print()\nenv.execute()\n")
    for options in (("--packages", package), (f"-Dspark.jars.packages={package}",)):
        done = submit(*options, program)
        _expect(done, errors.JarError, package, "Scala 2.12", "take spark-sql-kafka-0-10_2.13 instead")
        assert "Resolving" not in done.stderr


def test_script_that_raises(yarnflow: Commands, tmp_path: Path) -> None:
    program = _program(
        tmp_path,
        "from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate()\nraise KeyError('x')\n",
        "",
    )
    done = yarnflow.run("submit", program)
    assert done.process.returncode == errors.ProgramFailed.exit_code
    assert "KeyError: 'x'" in done.stderr


@pytest.mark.gate
def test_java_is_missing(yarnflow: Commands, tmp_path: Path) -> None:
    program = _program(tmp_path, "numbers.print()\nenv.execute()\n")
    empty = tmp_path / "bin"
    empty.mkdir()
    (empty / "python").symlink_to(os.path.realpath("/proc/self/exe"))
    done = yarnflow.start("submit", program, environment={"PATH": str(empty), "JAVA_HOME": ""})
    done.wait()
    _expect(Ended.of(done), errors.JavaUnavailable, "17")


@pytest.mark.gate
def test_no_free_port(yarnflow: Commands, tmp_path: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        done = yarnflow.run("jobmanager", f"-Djobmanager.rpc.port={port}", f"-Dio.tmp.dirs={tmp_path}")
        assert done.process.returncode == errors.PortUnavailable.exit_code, done.stderr
        assert str(port) in done.stderr


@pytest.mark.gate
@pytest.mark.parametrize(
    "garbage",
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", id="http"),
        pytest.param(struct.pack("!I", 2**31 - 1) + b"\x80\x01", id="huge frame"),
        pytest.param(b"\x00" * 64, id="zeros"),
    ],
)
def test_malformed_frame_does_not_hurt_the_job_manager(
    yarnflow: Commands, tmp_path: Path, garbage: bytes
) -> None:
    directory = f"-Dio.tmp.dirs={tmp_path}"
    master = yarnflow.start("jobmanager", "-Djobmanager.rpc.port=0", directory)
    published = wait_until(lambda: list(files_below(tmp_path, "jobmanager.json")), "the JobManager's address")
    host, port = json.loads(published[0].read_text())["address"].rsplit(":", 1)
    with socket.create_connection((host, int(port)), PATIENCE.answer_s) as connection:
        connection.sendall(garbage)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass
    listing = yarnflow.start("list", "-m", f"{host}:{port}", directory)
    assert listing.wait() == 0, listing.stderr
    assert master.process.poll() is None
