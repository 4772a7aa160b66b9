"""Wrong input: one line with what, where and what to do; an exit status of its own; nothing left running."""

from __future__ import annotations

import json
import os
import socket
import struct
from pathlib import Path

import pytest

from integration.conftest import Commands, Started, wait_until
from integration.database_servers import PostgreSql
from integration.living_files import files_below
from integration.servers import running
from yarnflow import errors

pytestmark = pytest.mark.gate

HEADER = """
from yarnflow.api import *
env = StreamExecutionEnvironment.get_execution_environment()
numbers = env.from_collection([(1, "a"), (2, "b")], "number INT, word STRING")
"""


def _program(directory: Path, text: str, header: str = HEADER) -> Path:
    path = directory / "program.py"
    path.write_text(header + text)
    return path


def _expect(done: Started, error: type[errors.YarnflowError], *parts: str) -> None:
    assert done.process.returncode == error.exit_code, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert len(lines) == 1, done.stderr
    for part in parts:
        assert part in lines[0]
    assert "Traceback" not in done.stderr, "a traceback of ours was shown"


def test_missing_program(yarnflow: Commands) -> None:
    _expect(yarnflow.run("submit", "nowhere.py"), errors.ProgramNotFound, "nowhere.py")


def test_syntax_error(yarnflow: Commands, tmp_path: Path) -> None:
    _expect(
        yarnflow.run("submit", _program(tmp_path, "env.execute(")),
        errors.ProgramSyntaxError,
        "program.py, line 5",
    )


def test_unknown_option(yarnflow: Commands, tmp_path: Path) -> None:
    done = yarnflow.run(
        "submit", "-Dparalellism.default=2", _program(tmp_path, "numbers.print(); env.execute()")
    )
    _expect(done, errors.UnknownOption, "parallelism.default")


def test_unknown_target(yarnflow: Commands, tmp_path: Path) -> None:
    done = yarnflow.run("submit", "--target", "lokal", _program(tmp_path, "numbers.print(); env.execute()"))
    _expect(done, errors.InvalidOption, "lokal", "local")


def test_no_execute(yarnflow: Commands, tmp_path: Path) -> None:
    _expect(yarnflow.run("submit", _program(tmp_path, "numbers.print()")), errors.NoExecuteCall, "execute")


def test_unserialisable_function(yarnflow: Commands, tmp_path: Path) -> None:
    program = _program(
        tmp_path,
        "import threading\nlock = threading.Lock()\n"
        "numbers.map(lambda row: lock and row.number, output_type=int).print()\nenv.execute()\n",
    )
    _expect(yarnflow.run("submit", program), errors.UnserializableFunction, "lock", "program.py:")


def test_wrong_column(yarnflow: Commands, tmp_path: Path) -> None:
    program = _program(tmp_path, "numbers.select('numbr + 1 AS n').print()\nenv.execute()\n")
    _expect(yarnflow.run("submit", program), errors.UnknownField, "program.py:5", "numbr", "number")


def test_parallelism_above_maximum(yarnflow: Commands, tmp_path: Path) -> None:
    program = _program(tmp_path, "numbers.print()\nenv.execute()\n")
    done = yarnflow.run("submit", "-p", "9", "-Dpipeline.max-parallelism=4", program)
    _expect(done, errors.ParallelismTooHigh, "9", "4")


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
    _expect(yarnflow.run("submit", program), errors.SourceNotFound, "/no/such/place")


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
        done = yarnflow.run("submit", program, server.url)
        _expect(done, errors.DatabaseError, server.url, "password authentication failed", "(program.py:12)")
        assert "hunter2" not in done.stderr + done.stdout


def test_package_for_another_scala(yarnflow: Commands, tmp_path: Path) -> None:
    package = "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.1"
    program = _program(tmp_path, "numbers.print()\nenv.execute()\n")
    for options in (("--packages", package), (f"-Dspark.jars.packages={package}",)):
        done = yarnflow.run("submit", *options, program)
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


def test_java_is_missing(yarnflow: Commands, tmp_path: Path) -> None:
    program = _program(tmp_path, "numbers.print()\nenv.execute()\n")
    empty = tmp_path / "bin"
    empty.mkdir()
    (empty / "python").symlink_to(os.path.realpath("/proc/self/exe"))
    done = yarnflow.start("submit", program, environment={"PATH": str(empty), "JAVA_HOME": ""})
    done.wait()
    _expect(done, errors.JavaUnavailable, "17")


def test_no_free_port(yarnflow: Commands, tmp_path: Path) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        done = yarnflow.run("jobmanager", f"-Djobmanager.rpc.port={port}", f"-Dio.tmp.dirs={tmp_path}")
        assert done.process.returncode == errors.PortUnavailable.exit_code, done.stderr
        assert str(port) in done.stderr


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
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(garbage)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass
    listing = yarnflow.start("list", "-m", f"{host}:{port}", directory)
    assert listing.wait() == 0, listing.stderr
    assert master.process.poll() is None
