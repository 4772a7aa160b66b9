"""``execute_and_collect`` and what else a program learns of its jobs."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.conftest import KEEP_DRIVER, Commands, wait_until
from integration.processes import driver_with_a_job
from integration.pyflink.programs import ABOUT_THE_JOB, programs
from integration.shared_cluster import SharedCluster
from yarnflow.api import RateSource, Row, StreamExecutionEnvironment
from yarnflow.api.common import Types
from yarnflow.api.streams.stream_base import CloseableIterator
from yarnflow.errors import UserCodeError


@pytest.mark.gate
def test_recorded_program(yarnflow: Commands) -> None:
    """What it prints is of a cluster; all others run in integration/pyflink."""
    (program,) = (program for program in programs() if program.name == ABOUT_THE_JOB)
    done = yarnflow.run("submit", "--target", "local", KEEP_DRIVER, program.path)
    assert done.process.returncode == 0, done.stderr
    assert program.comparable(done.stdout) == program.expected_lines()


@pytest.fixture
def programs_there(shared_cluster: SharedCluster) -> Iterator[None]:
    """Programs of this process run their jobs on the shared cluster."""
    with shared_cluster.programs():
        yield


def environment() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    return env


def iterator(found: object) -> CloseableIterator:
    assert isinstance(found, CloseableIterator)
    return found


@pytest.mark.usefixtures("programs_there")
def test_each_element_comes_once_though_the_driver_is_killed(shared_cluster: SharedCluster) -> None:
    env = environment()
    numbers = env.from_source(RateSource(rows_per_second=50, count=1_000)).map(
        lambda row: row.value, Types.LONG()
    )
    with iterator(numbers.execute_and_collect("numbers")) as found:
        first = [next(found) for _ in range(200)]
        driver = wait_until(lambda: driver_with_a_job(shared_cluster.mark), "the driver")
        driver.send_signal(signal.SIGKILL)
        assert [*first, *found] == list(range(1_000))


class Half:
    """Known to the program only."""

    def __init__(self, value: int) -> None:
        self.value = value


@pytest.mark.usefixtures("programs_there")
def test_iterators_end_their_jobs(tmp_path: Path) -> None:
    env = environment()
    rates = env.from_source(RateSource(rows_per_second=50))
    # columns, while the job runs
    rows = rates.execute_and_collect(limit=2)
    assert isinstance(rows, list) and [row.value for row in rows] == [0, 1]
    # objects of the program's own classes
    with iterator(rates.map(lambda row: Half(row.value)).execute_and_collect()) as halves:
        assert [next(halves).value for _ in range(3)] == [0, 1, 2]
        assert type(next(halves)) is Half
    # columns of a bounded source are one batch
    words = env.from_collection([("a", 1), ("b", None)], schema="word STRING, n INT")
    with iterator(words.execute_and_collect()) as found:
        assert [(row.word, row["n"]) for row in found] == [("a", 1), ("b", None)]
    # and a failure
    broken = env.from_collection([Row(2), Row(0)]).map(lambda row: 4 // row[0], Types.LONG())
    with iterator(broken.execute_and_collect()) as found, pytest.raises(UserCodeError, match="ZeroDivision"):
        list(found)
    # nothing but this one has been running since
    rates.map(lambda row: row.value, Types.LONG()).map(lambda n: n).print()
    client = env.execute_async("endless")
    wait_until(lambda: client.get_job_status().result().name == "RUNNING", "the job to run")
    path = client.trigger_savepoint(str(tmp_path / "savepoints")).result()
    assert path.startswith(f"file://{tmp_path}/savepoints/savepoint-")
    stopped = client.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
    assert stopped != path and Path(stopped.removeprefix("file://"), "_metadata").exists()
    assert client.get_job_execution_result().result().get_net_runtime() > 0
