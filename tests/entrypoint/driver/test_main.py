"""How a driver process ends, and what the options mean for it."""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.patience import PATIENCE
from yarnflow.config.configuration import Configuration
from yarnflow.entrypoint.driver import main
from yarnflow.entrypoint.driver.main import driver_jvm_flags, driver_settings, with_options_of
from yarnflow.errors import InvalidOption, LeaseLost, error_from_exit
from yarnflow.process.output.rotation import LogRotation
from yarnflow.spark.launch.java import JavaRuntime
from yarnflow.spark.launch.jvm import GatewayJvm

#: starts what stands for the JVM as a driver does, then ends as a driver does that lost its lease: in
#: another thread than the main one, which holds the lock of every logger
DRIVER: Final = """
import logging, sys, threading, time
from pathlib import Path
from yarnflow.entrypoint.driver.main import end_process
from yarnflow.errors import LeaseLost
from yarnflow.process.spawn import wrap_command
from yarnflow.spark.launch.jvm import GatewayJvm
jvm = GatewayJvm.launch(wrap_command(["sleep", "1000"]), host="127.0.0.1")
print(jvm.pid, flush=True)
handler = logging.StreamHandler()
logging.getLogger().addHandler(handler)
handler.acquire()
error = LeaseLost("driver d1 may not write the job's state any more: expired") if {lost} else None
threading.Thread(target=end_process, args=(jvm, error)).start()
time.sleep(1000)
"""


@pytest.mark.parametrize(("lost", "status"), [(True, LeaseLost.exit_code), (False, 0)])
def test_the_process_ends_at_once_and_its_jvm_with_it(lost: bool, status: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER.format(lost=lost)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert process.stdout is not None
    jvm = int(process.stdout.readline())
    with contextlib.suppress(ProcessLookupError):  # it has ended already
        descriptor = os.pidfd_open(jvm)
        try:
            ended = bool(select.select([descriptor], [], [], PATIENCE.process_s)[0])
        finally:
            os.close(descriptor)
        assert ended, "the JVM has outlived its driver"
    _, errors = process.communicate(timeout=PATIENCE.process_s)
    assert process.returncode == status, errors
    if lost:
        found = error_from_exit(process.returncode, errors)
        assert isinstance(found, LeaseLost) and "driver d1" in found.message


def test_a_job_has_its_own_jars_and_those_of_its_cluster() -> None:
    session = Configuration.from_dict({"spark.jars": "hdfs://n/a.jar", "spark.x": "1"}, "session")
    options = with_options_of(session, {"spark.jars": "hdfs://n/b.jar", "spark.x": "2"})
    assert options.to_dict() == {"spark.jars": "hdfs://n/a.jar,hdfs://n/b.jar", "spark.x": "2"}
    assert with_options_of(session, {}) == session


def test_an_earlier_driver_is_waited_for_until_zookeeper_has_given_it_up() -> None:
    session = {"high-availability.zookeeper.client.session-timeout": "40 s"}
    assert driver_settings(Configuration.from_dict(session, "test")).lease_timeout_ms == 120_000
    assert driver_settings(Configuration.empty()).lease_timeout_ms == 30_000


@pytest.mark.parametrize(
    ("options", "several"),
    [
        ({}, False),
        ({"driver.idle-timeout": "1 min"}, True),
        ({"driver.idle-timeout": "1 min", "high-availability.type": "zookeeper"}, False),
    ],
)
def test_a_driver_for_several_jobs_is_asked_for(options: dict[str, str], several: bool) -> None:
    assert driver_settings(Configuration.from_dict(options, "test")).serves_several_jobs is several


def test_jvm_options_are_read_as_a_shell_does() -> None:
    java = JavaRuntime(Path("/java"), "17.0.15", "PATH")
    options = {"spark.driver.extraJavaOptions": "-Da='b c' -XX:+UseG1GC", "driver.class-data-sharing": "off"}
    flags = driver_jvm_flags(java, Configuration.from_dict(options, "test"), Path("/scratch"))
    assert "-Djava.io.tmpdir=/scratch" in flags
    assert flags[-2:] == ["-Da=b c", "-XX:+UseG1GC"]
    broken = Configuration.from_dict({"spark.driver.extraJavaOptions": "-Da='b"}, "test")
    with pytest.raises(InvalidOption, match="spark.driver.extraJavaOptions.*No closing quotation"):
        driver_jvm_flags(java, broken, Path("/scratch"))


def test_the_jvm_writes_to_no_file_that_python_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would go on in the renamed one, and in the end in one that is deleted."""
    launched: dict[str, object] = {}
    monkeypatch.setattr(GatewayJvm, "launch", lambda command, **options: launched.update(options))
    rotation = LogRotation()
    monkeypatch.setattr(main, "own_rotation", lambda: rotation)
    parsed = argparse.Namespace(
        memory_mib=1600, log_file=tmp_path / "driver-1.log", scratch_dir=tmp_path / "scratch"
    )
    java = JavaRuntime(Path("/jre/bin/java"), "17.0.1", "PATH")
    options = Configuration.from_dict({"driver.class-data-sharing": "off"}, "test")
    main._launch(java, options, parsed, "127.0.0.1")
    assert launched["log_file"] == tmp_path / "driver-1.jvm.log"
    assert list(rotation._files) == [tmp_path / "driver-1.jvm.log"]


def test_jvm_options_of_flinks_keys_come_before_sparks(tmp_path: Path) -> None:
    configuration = Configuration.from_dict(
        {
            "env.java.opts": "-Dall=1",
            "env.java.opts.jobmanager": "-Ddriver=1",
            "env.java.opts.taskmanager": "'-Dworker=a b'",
            "spark.driver.extraJavaOptions": "-Dall=2",
            "spark.executor.extraJavaOptions": "-Dall=3",
        },
        "test",
    )
    flags = driver_jvm_flags(JavaRuntime(Path("/j"), "17.0.1", "PATH"), configuration, tmp_path)
    assert flags[-3:] == ["-Dall=1", "-Ddriver=1", "-Dall=2"]
    options = with_options_of(configuration, {})
    assert options.spark_options()["spark.executor.extraJavaOptions"] == "-Dall=1 '-Dworker=a b' -Dall=3"
    of_job = with_options_of(configuration, {"spark.executor.extraJavaOptions": "-Dall=4"})
    assert of_job.spark_options()["spark.executor.extraJavaOptions"] == "-Dall=1 '-Dworker=a b' -Dall=4"


def test_jvm_options_that_no_shell_would_read_are_told_with_their_key() -> None:
    configuration = Configuration.from_dict({"env.java.opts.all": "'-Dx"}, "test")
    with pytest.raises(InvalidOption, match="env.java.opts.all is"):
        with_options_of(configuration, {})
