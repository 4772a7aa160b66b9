"""What a TaskManager's executors are started with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import DriverId, ExecutorId, JobId
from yarnflow.core.messages import ExecutorDescriptor
from yarnflow.core.resources.attachment import PYTHON_MEMORY_VARIABLE
from yarnflow.entrypoint.taskmanager import executors
from yarnflow.errors import ResourceError
from yarnflow.process.output.ended_logs import EXECUTORS, EndedLogs, by_process
from yarnflow.process.spawn import ProcessSpec
from yarnflow.spark.launch.driver_secret import spark_secret
from yarnflow.spark.launch.java import JavaRuntime

DESCRIPTOR = ExecutorDescriptor(
    JobId("1" * 32), DriverId("d"), ExecutorId("0"), "spark://CoarseGrainedScheduler@h:1", "app-1", 1
)
NOTHING: Mapping[str, str] = {}


class Started:
    """Processes that were asked for."""

    def __init__(self) -> None:
        self.specs: list[ProcessSpec] = []
        self.listeners: list[Callable[[int], None]] = []

    def __call__(self, spec: ProcessSpec) -> Any:
        self.specs.append(spec)
        # a number that no process has
        return SimpleNamespace(
            pid=2**30, spec=spec, on_exit=self.listeners.append, output_tail=lambda: "last words"
        )


def processes(
    directory: Path,
    started: Started,
    options: Mapping[str, str] = NOTHING,
    one_job: bool = False,
    ended_logs: EndedLogs | None = None,
) -> executors.SparkExecutorProcesses:
    values = {"driver.class-data-sharing": "off", **options}
    configuration = Configuration.from_dict(values, "test")
    disks = (directory / "executors" / "tm-1", directory / "disk2")
    places = executors.ExecutorPlaces(directory / "logs", "tm-1-", disks, {"data": directory})
    return executors.SparkExecutorProcesses(
        configuration,
        places,
        "localhost",
        b"cluster",
        one_job,
        ended_logs=ended_logs,
        start_process=started,
        java=lambda: JavaRuntime(Path("/jre/bin/java"), "17.0.1", "PATH"),
    )


def test_the_driver_s_secret_is_derived_here(tmp_path: Path) -> None:
    started = Started()
    assert processes(tmp_path, started).start(DESCRIPTOR) == 2**30
    (spec,) = started.specs
    assert spec.whole_environment, "or what was left out would be inherited after all"
    assert spec.environment["_SPARK_AUTH_SECRET"] == spark_secret(b"cluster", DESCRIPTOR.driver_id)
    assert spec.command[spec.command.index("--bind-address") + 1] == "127.0.0.1"


def test_secrets_of_drivers_and_clusters_differ() -> None:
    made = {spark_secret(c, DriverId(d)) for c in (b"a", b"b") for d in "12"}
    assert len(made) == 4
    assert all(len(secret) == 64 for secret in made)


def test_a_directory_that_cannot_be_made_is_a_resource_error(tmp_path: Path) -> None:
    (tmp_path / "executors").write_text("in the way")
    with pytest.raises(ResourceError, match="executor 0 of job 1+ cannot be started: .*executors"):
        processes(tmp_path, Started()).start(DESCRIPTOR)


def test_every_executor_has_directories_of_its_own_which_go_with_it(tmp_path: Path) -> None:
    started = Started()
    own, specs = processes(tmp_path, started), started.specs
    own.start(DESCRIPTOR)
    own.start(replace(DESCRIPTOR, executor_id=ExecutorId("1")))
    first, second = (spec.directories[0] for spec in specs)
    assert [spec.cwd for spec in specs] == [first, second]
    assert first != second
    assert specs[0].log_file == tmp_path / "logs" / "tm-1-executor-0-11111111.log"
    assert (first / "data").resolve() == tmp_path.resolve()
    local = [Path(path) for path in specs[0].environment["SPARK_LOCAL_DIRS"].split(",")]
    assert local == [first, tmp_path / "disk2" / first.name]
    assert specs[0].directories == tuple(local), "they go with it"
    assert second not in local


def test_an_executor_s_end_makes_old_logs_due(tmp_path: Path) -> None:
    started, ended_logs = Started(), EndedLogs(tmp_path, EXECUTORS, 1)
    own = processes(tmp_path, started, ended_logs=ended_logs)
    ended_logs.remove_surplus()
    own.start(DESCRIPTOR)
    assert not ended_logs.due
    started.listeners[0](0)
    assert ended_logs.due


def test_the_logs_of_an_executor_are_found(tmp_path: Path) -> None:
    started = Started()
    processes(tmp_path, started).start(DESCRIPTOR)
    file = started.specs[0].log_file
    assert file is not None
    (logs,) = by_process([file.name], EXECUTORS)
    assert logs.head == file.name


def test_an_executor_s_end_is_that_of_the_job_that_has_it(tmp_path: Path) -> None:
    started, ends = Started(), []
    own, job, following = processes(tmp_path, started), DESCRIPTOR.job_id, JobId("2" * 32)
    own.on_exit(lambda *end: ends.append(end))
    own.start(DESCRIPTOR)
    assert own.hand_over(DESCRIPTOR.executor_id, job, following)
    assert not own.hand_over(DESCRIPTOR.executor_id, job, following), "it is not that job's any more"
    started.listeners[0](3)
    assert ends == [(following, "0", 3, "last words")]
    assert not own.hand_over(DESCRIPTOR.executor_id, following, job), "it has ended"


def test_files_of_a_job_are_not_there_for_the_next(tmp_path: Path) -> None:
    started = Started()
    own = processes(tmp_path, started)
    own.start(DESCRIPTOR)
    first = started.specs[0].directories[0]
    (first / "counts.txt").write_text("of a function")
    (first / "out" / "deep").mkdir(parents=True)
    (first / "elsewhere").symlink_to(tmp_path)
    for name in ("blockmgr-1", "spark-2"):
        (first / name).mkdir()
    own.clear(DESCRIPTOR.executor_id, DESCRIPTOR.job_id)
    assert sorted(path.name for path in first.iterdir()) == ["blockmgr-1", "data", "spark-2", "tmp"]
    assert tmp_path.is_dir()


def test_memory_and_processors_are_those_of_the_slots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    started = Started()
    options = {
        "taskmanager.numberOfTaskSlots": "4",
        "taskmanager.memory.process.size": "8g",
        "taskmanager.memory.task.off-heap.size": "400m",
    }
    own = processes(tmp_path, started, options)
    for slots in (1, 3, 4):
        own.start(replace(DESCRIPTOR, executor_id=ExecutorId(str(slots)), cores=slots))

    def found(start: str) -> list[str]:
        options = [next((o for o in spec.command if o.startswith(start)), "") for spec in started.specs]
        return [option.removeprefix(start) for option in options]

    heaps = [int(size.removesuffix("m")) for size in found("-Xmx")]
    assert heaps[0] + heaps[1] <= heaps[2] == 8192 - 128 - 819 - 256 - 2846 - 400
    assert found("-Dspark.memory.offHeap.size=") == ["100m", "300m", "400m"]
    assert found("-XX:ActiveProcessorCount=") == ["2", "6", ""], "of a machine of eight"
    python = [spec.environment.get(PYTHON_MEMORY_VARIABLE) for spec in started.specs]
    assert python == ["623", "2075", None]


@pytest.mark.parametrize(
    ("one_job", "job_slots", "has_all"),
    [(True, 2, True), (True, 4, False), (True, 0, False), (False, 2, False)],
)
def test_the_only_executor_of_a_cluster_has_all_memory(
    tmp_path: Path, one_job: bool, job_slots: int, has_all: bool
) -> None:
    """The other slots can be nobody's: a job in a cluster of its own wants fewer than a TaskManager has."""
    started = Started()
    options = {"taskmanager.numberOfTaskSlots": "4", "taskmanager.memory.process.size": "8g"}
    own = processes(tmp_path, started, options, one_job)
    own.start(replace(DESCRIPTOR, cores=2, job_slots=job_slots))
    (spec,) = started.specs
    assert (f"-Xmx{8192 - 128 - 819 - 256 - 2846}m" in spec.command) == has_all
    assert (PYTHON_MEMORY_VARIABLE in spec.environment) != has_all
    assert any(o.startswith("-XX:ActiveProcessorCount=") for o in spec.command) != has_all
