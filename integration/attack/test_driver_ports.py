"""Ports of a driver and its JVM, which every process of the machine can connect to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
import pytest

from integration.attack.attacker import NEEDS_ROOT, can_be_another_user, run_attack
from integration.conftest import wait_until
from integration.spark.driver_harness import DriverProcess

#: of batches, in the output of the driver
_BATCH: Final = "batch went by\n"
_SHIPPED: Final = "helper.py"
_SECRET_OPTION: Final = "c4narypassw0rd"
#: added to the job by the program itself
_PRIVATE: Final = "credentials.yaml"

VICTIM: Final = f"""
import os, sys
import helper
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
ensure_callback_server_started(spark.sparkContext._gateway)
with open(sys.argv[1], "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as private:
    private.write("key: value")
spark.sparkContext.addFile(sys.argv[1])
def show(frame, batch):
    frame.collect()
    sys.stdout.write({_BATCH!r})
    sys.stdout.flush()
rates = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
rates.writeStream.foreachBatch(show).trigger(processingTime="200 milliseconds").start().awaitTermination()
"""

_needs_root: Final = pytest.mark.skipif(not can_be_another_user(), reason=NEEDS_ROOT)
by_anybody: Final = pytest.mark.parametrize("user", [pytest.param("other", marks=_needs_root), "same"])


@dataclass(frozen=True)
class Victim:
    """A driver whose batches go by."""

    driver: DriverProcess
    jvm: psutil.Process

    @property
    def batches(self) -> int:
        """How many have gone by so far."""
        return self.driver.output_text().count(_BATCH)

    def await_batches(self) -> None:
        """Wait for two more, the second of which has begun after this call."""
        before = self.batches
        wait_until(lambda: self.batches >= before + 2, f"batches to go on: {self.driver.log_text()[-3000:]}")

    def attack(self, user: str, words: str, process: psutil.Process, *names: str) -> str:
        """Return what the ports a process listens at have answered."""
        listening = [end for end in process.net_connections("tcp") if end.status == psutil.CONN_LISTEN]
        ports = ",".join(str(end.laddr.port) for end in listening)
        assert ports, "the driver listens nowhere"
        return run_attack("driver_ports", user, words, ports, *names)


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    directory = tmp_path_factory.mktemp("driver")
    with DriverProcess(directory, {"spark.redis.auth": _SECRET_OPTION}) as driver:
        driver.assign()
        driver.await_registration()
        driver.start_executor(0)
        driver.script(1, VICTIM, argv=(str(directory / _PRIVATE),), helper=b"# for all executors")
        children = psutil.Process(driver.process.pid).children()
        (jvm,) = (child for child in children if child.name().startswith("java"))
        found = Victim(driver, jvm)
        found.await_batches()
        yield found


@pytest.mark.gate
@by_anybody
def test_nobody_but_the_jvm_is_answered_by_python(victim: Victim, user: str) -> None:
    """What Python was called for by a stranger ran with what the stranger answered to its own calls."""
    python = psutil.Process(victim.driver.process.pid)
    # another port, for calls of yarnflow, says what it speaks
    assert not re.search(r"-> b['\"]!", victim.attack(user, "callback", python))
    victim.await_batches()
    assert "Refused a connection from another process" in victim.driver.log_text()


@pytest.mark.gate
@by_anybody
def test_no_port_of_the_jvm_has_a_page(victim: Victim, user: str) -> None:
    """Spark's Master had one on which anybody could end the job."""
    assert not re.search(r"-> b['\"]HTTP", victim.attack(user, "http", victim.jvm))
    victim.await_batches()


@by_anybody
def test_nothing_secret_is_among_the_files_that_spark_serves(victim: Victim, user: str) -> None:
    directory: Path = victim.driver.directory
    names = {path.name for path in directory.iterdir() if path.is_file()} | {_SHIPPED, "yarnflow-conf.yaml"}
    asked = sorted(f"/{place}/{name}" for name in names - {_PRIVATE} for place in ("files", "jars"))
    answered = victim.attack(user, "stream", victim.jvm, *asked)
    # the one that is needed by executors is there, so the others were looked for in the right way
    assert "# for all executors" in answered
    for secret in (victim.driver.secret, victim.driver.spark_secret, _SECRET_OPTION):
        assert secret not in answered
    victim.await_batches()


def test_a_private_file_that_a_program_adds_is_warned_of(victim: Victim) -> None:
    private = victim.driver.directory / _PRIVATE
    assert f"{private} can be read by its owner only, but Spark serves" in victim.driver.log_text()
