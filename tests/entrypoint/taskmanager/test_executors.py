"""What a TaskManager's executors are started with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import DriverId, ExecutorId, JobId
from yarnflow.core.messages import ExecutorDescriptor
from yarnflow.core.resources.memory import task_manager_memory
from yarnflow.entrypoint.taskmanager import executors
from yarnflow.errors import ResourceError
from yarnflow.spark.launch.java import JavaRuntime
from yarnflow.spark.launch.job_secret import spark_secret

DESCRIPTOR = ExecutorDescriptor(
    JobId("1" * 32), DriverId("d"), ExecutorId("0"), "spark://CoarseGrainedScheduler@h:1", "app-1", 1
)


def processes(directory: Path) -> executors.SparkExecutorProcesses:
    configuration = Configuration.from_dict({"driver.class-data-sharing": "off"}, "test")
    disks = (directory / "executors" / "tm-1", directory / "disk2")
    places = executors.ExecutorPlaces(directory / "logs", "tm-1-", disks, {"data": directory})
    return executors.SparkExecutorProcesses(
        configuration, places, "localhost", task_manager_memory(), b"cluster"
    )


@pytest.fixture(autouse=True)
def _java(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = JavaRuntime(Path("/jre/bin/java"), "17.0.1", "PATH")
    monkeypatch.setattr(executors, "find_java", lambda: runtime)


def test_the_job_s_secret_is_derived_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs: list[Any] = []

    def spawn(spec: Any) -> Any:
        specs.append(spec)
        return SimpleNamespace(pid=7, on_exit=lambda listener: None)

    monkeypatch.setattr(executors, "spawn", spawn)
    assert processes(tmp_path).start(DESCRIPTOR) == 7
    assert specs[0].whole_environment, "or what was left out would be inherited after all"
    assert specs[0].environment["_SPARK_AUTH_SECRET"] == spark_secret(b"cluster", DESCRIPTOR.job_id)
    assert specs[0].command[specs[0].command.index("--bind-address") + 1] == "127.0.0.1"


def test_secrets_of_jobs_and_clusters_differ() -> None:
    made = {spark_secret(c, JobId(j * 32)) for c in (b"a", b"b") for j in "12"}
    assert len(made) == 4
    assert all(len(secret) == 64 for secret in made)


def test_a_directory_that_cannot_be_made_is_a_resource_error(tmp_path: Path) -> None:
    (tmp_path / "executors").write_text("in the way")
    with pytest.raises(ResourceError, match="executor 0 of job 1+ cannot be started: .*executors"):
        processes(tmp_path).start(DESCRIPTOR)


def test_every_executor_has_directories_of_its_own_which_go_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs: list[Any] = []

    def spawn(spec: Any) -> Any:
        specs.append(spec)
        return SimpleNamespace(pid=7, on_exit=lambda listener: None, output_tail=lambda: "")

    monkeypatch.setattr(executors, "spawn", spawn)
    own = processes(tmp_path)
    own.start(DESCRIPTOR)
    own.start(replace(DESCRIPTOR, executor_id=ExecutorId("1")))
    first, second = (spec.cwd for spec in specs)
    assert first != second
    assert specs[0].log_file.name == "tm-1-executor-0-11111111.log"
    assert (first / "data").resolve() == tmp_path.resolve()
    local = [Path(path) for path in specs[0].environment["SPARK_LOCAL_DIRS"].split(",")]
    assert local == [first, tmp_path / "disk2" / first.name]
    assert specs[0].directories == tuple(local), "they go with it"
    assert second not in local
