"""When a local cluster starts what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobSubmission, ProgramKind
from yarnflow.entrypoint.standalone.local import LocalCluster, local_configuration, with_slots
from yarnflow.errors import ResourceError
from yarnflow.process.dirs import ClusterDirectory


class FakeSupervisor:
    """Writes down what was started, and the slots that TaskManagers would read then."""

    failure = None

    def __init__(self, directory: ClusterDirectory, commands: object, *, workers: int, **_: Any) -> None:
        self.conf_file = directory.conf_file
        self.calls: list[tuple[str, object]] = [("made", workers)]

    def start_job_manager(self) -> None:
        self.calls.append(("jobmanager", None))

    def start_spare_driver(self, memory_mib: int) -> None:
        self.calls.append(("driver", memory_mib))

    def start_workers(self) -> None:
        slots = json.loads(self.conf_file.read_text()).get("taskmanager.numberOfTaskSlots")
        self.calls.append(("workers", slots))

    def await_address(self, timeout_s: float) -> str:
        raise ResourceError("the JobManager did not serve")

    def stop(self, grace_s: float) -> None:
        self.calls.append(("stop", grace_s))


def _started(tmp_path: Path, **options: str) -> tuple[LocalCluster, list[tuple[str, object]]]:
    made: list[FakeSupervisor] = []

    def make(*arguments: Any, **keywords: Any) -> Any:
        made.append(FakeSupervisor(*arguments, **keywords))
        return made[-1]

    values = {"io.tmp.dirs": str(tmp_path), "minicluster.number-of-taskmanagers": "2", **options}
    cluster = LocalCluster.start(Configuration.from_dict(values, "-D"), supervise=make)
    return cluster, made[0].calls


def _submit(cluster: LocalCluster, slots: int) -> None:
    """Hand a job over to a JobManager that never serves."""
    with pytest.raises(ResourceError, match="did not serve"):
        cluster.submit(JobSubmission(JobId("a" * 32), "j", ProgramKind.GRAPH, "{}", {}), slots)


def test_task_managers_wait_for_the_first_job_and_are_as_large_as_it_needs(tmp_path: Path) -> None:
    cluster, calls = _started(tmp_path)
    assert calls == [("made", 2), ("jobmanager", None), ("driver", 1600)]
    _submit(cluster, 5)
    _submit(cluster, 16)
    assert calls[3:] == [("workers", "3")]
    cluster.stop(forced=True)


def test_slots_the_user_chose_stay(tmp_path: Path) -> None:
    cluster, calls = _started(tmp_path, **{"taskmanager.numberOfTaskSlots": "4"})
    _submit(cluster, 16)
    assert calls[3:] == [("workers", "4")]
    cluster.stop(forced=True)


def test_graph_without_vertices_still_has_a_slot() -> None:
    slots = with_slots(Configuration.empty(), 0).get_raw("taskmanager.numberOfTaskSlots")
    assert slots == "1"


def test_restarts_end_some_time_unless_the_user_wants_otherwise() -> None:
    key = "restart-strategy.exponential-delay.attempts-before-reset-backoff"
    preset = local_configuration(Configuration.empty(), Path("secret"))
    assert preset.to_dict()[key] == "5"
    chosen = local_configuration(Configuration.from_dict({key: "7"}, "test"), Path("secret"))
    assert chosen.to_dict()[key] == "7"
