"""Programs that no command runs: plain ``python job.py``, a test, ``python -m yarnflow``."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from integration.conftest import Commands, marked_processes, wait_until
from integration.processes import EXECUTOR, JOB_MANAGER, TASK_MANAGER, processes
from tests.patience import PATIENCE
from yarnflow.api import JobStatus, StreamExecutionEnvironment
from yarnflow.errors import UserCodeError

JOBS = """
import os
from integration.processes import JOB_MANAGER, TASK_MANAGER, processes
from yarnflow.api import StreamExecutionEnvironment
from yarnflow.errors import UserCodeError

def shout(text):
    return text.upper()

def broken(text):
    raise ValueError(f"cannot shout {text}")

def run(function, name):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection([name]).map(function, output_type="STRING").print()
    print("before", name)
    assert env.execute(name).get_net_runtime() >= 0
    print("after", name)
    return [process.pid for what in (JOB_MANAGER, TASK_MANAGER) for process in processes(MARK, what)]

if __name__ == "__main__":
    MARK = os.environ["YARNFLOW_INTEGRATION_TEST"]
    first, second = run(shout, "one"), run(shout, "two")
    assert first == second and len(first) == 2, "the cluster was not kept"
    try:
        run(broken, "three")
    except UserCodeError as error:
        print("caught", "ValueError: cannot shout three" in error.traceback_text)
    run(broken, "four")
"""
ENDLESS = """
from yarnflow.api import RateSource, StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_source(RateSource(rows_per_second=5)).print()
env.execute()
"""
#: the functions leave what they can where the next job's could find it
LEFT = """
import builtins, collections, os, sys, time
from integration.processes import DRIVER, EXECUTOR, processes
from yarnflow.api import StreamExecutionEnvironment
from yarnflow.errors import UserCodeError

def leaving(text):
    seen = [getattr(builtins, "left", None), os.environ.get("LEFT"), os.path.exists("left.txt")]
    builtins.left, os.environ["LEFT"] = text, text
    open("left.txt", "w").close()
    return f"{text} of {os.getppid()} found {seen}"

def broken(text):
    raise ValueError(text)

def run(function, name, parallelism=1):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    env.from_collection([name]).map(function, output_type="STRING").print()
    env.execute(name)
    return {what: {p.pid for p in processes(MARK, what)} for what in (DRIVER, EXECUTOR)}

if __name__ == "__main__":
    MARK = os.environ["YARNFLOW_INTEGRATION_TEST"]
    first, second = run(leaving, "one"), run(leaving, "two")
    assert len(first[DRIVER]) == len(first[EXECUTOR]) == 1, first
    assert second == first, "not the same processes"
    try:
        run(broken, "three")
    except UserCodeError:
        pass
    # a spare may be there by now
    fourth = run(leaving, "four")
    assert not first[DRIVER] & fourth[DRIVER], "the driver of a job that has failed was used again"
    assert not first[EXECUTOR] & fourth[EXECUTOR], "its executor was used again"
    # other options, other processes; and more slots
    fifth = run(leaving, "five", 2)
    assert not fourth[EXECUTOR] & fifth[EXECUTOR]
    print("all is well")
"""
SCRIPT = """
import sys
from pyspark.sql import SparkSession
print(SparkSession.builder.getOrCreate().range(3).count(), *sys.argv[1:])
"""


def _logs_of(stderr: str) -> Path:
    return Path(stderr.strip().splitlines()[-1].removeprefix("Logs are in "))


def test_several_executes_of_a_plain_program_and_a_failing_function(
    yarnflow: Commands, tmp_path: Path
) -> None:
    program = tmp_path / "job.py"
    program.write_text(JOBS)
    # the program looks at processes as the tests do
    root = str(Path(__file__).parents[1])
    settings = {"YARNFLOW_CONF_IO_TMP_DIRS": str(tmp_path), "PYTHONPATH": root}
    done = yarnflow.start_command([sys.executable, program], settings)
    assert done.wait(PATIENCE.command_s) == 1
    assert done.stdout.splitlines() == [
        *("before one", "ONE", "after one"),
        *("before two", "TWO", "after two"),
        *("before three", "caught True"),
        "before four",
    ]
    own, ours = done.stderr.index("in broken"), done.stderr.index("env.execute(name)")
    assert done.stderr.index("ValueError: cannot shout four") < ours and own < ours
    assert "UserCodeError: job four" in done.stderr
    assert _logs_of(done.stderr).is_dir()


@pytest.mark.drill
def test_a_job_that_has_finished_leaves_its_processes_to_the_next_and_nothing_else(
    yarnflow: Commands, tmp_path: Path
) -> None:
    program = tmp_path / "job.py"
    program.write_text(LEFT)
    settings = {"YARNFLOW_CONF_IO_TMP_DIRS": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[1])}
    done = yarnflow.start_command([sys.executable, program], settings)
    assert done.wait(PATIENCE.command_s) == 0, done.stderr
    *printed, last = done.stdout.splitlines()
    assert last == "all is well"
    said = [line.split(" found ") for line in printed]
    assert [found for _, found in said] == ["[None, None, False]"] * 4
    assert [who.split()[0] for who, _ in said] == ["one", "two", "four", "five"]
    daemons = [who.split()[-1] for who, _ in said]
    assert daemons[0] == daemons[1], "what Python workers are started from was not kept"


@pytest.mark.parametrize("number", [pytest.param(signal.SIGKILL, marks=pytest.mark.drill), signal.SIGINT])
def test_nothing_is_left_of_a_program_that_was_ended(
    yarnflow: Commands, tmp_path: Path, number: signal.Signals
) -> None:
    program = tmp_path / "endless.py"
    program.write_text(ENDLESS)
    started = yarnflow.start_command([sys.executable, program])
    wait_until(lambda: started.stdout.count("\n") > 1, "output of the job")
    assert processes(yarnflow.mark, EXECUTOR)
    started.process.send_signal(number)
    assert started.wait() == -number
    # and the fixture looks for all that was started
    wait_until(lambda: not marked_processes(yarnflow.mark), "the cluster to end", PATIENCE.process_s)


def _length(text: str) -> int:
    assert text, "rewritten by pytest"
    return len(text)


def test_jobs_in_a_test(own_cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.from_collection(["a", "bcd"]).map(_length, output_type="INT").print()
    env.execute("lengths")
    assert sorted(capsys.readouterr().out.split()) == ["1", "3"]
    # a failing one, and one that is wanted no more
    env.from_collection(["", "a"]).map(_length, output_type="INT").print()
    with pytest.raises(UserCodeError, match="rewritten by pytest"):
        env.execute()
    assert len(processes(own_cluster, JOB_MANAGER)) == len(processes(own_cluster, TASK_MANAGER)) == 1
    env.from_collection(["a"]).map(_length, output_type="INT").print()
    client = env.execute_async()
    client.cancel()
    wait_until(lambda: client.get_job_status().result() is JobStatus.CANCELED, "the job to be canceled")


@pytest.mark.gate
def test_python_m_yarnflow_runs_scripts(yarnflow: Commands, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = yarnflow.start_command([sys.executable, "-m", "yarnflow", script, "--day", "1"])
    assert done.wait() == 0, done.stderr
    assert done.stdout == "3 --day 1\n"
