"""When a local cluster starts what."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from yarnflow.config.configuration import Configuration
from yarnflow.core.cluster_result import ClusterResult
from yarnflow.core.ids import JobId
from yarnflow.core.messages import ClusterOverview, JobOverview, JobSubmission, JobSubmitted, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.entrypoint.standalone.local import LocalCluster, local_configuration, with_slots
from yarnflow.errors import ResourceError
from yarnflow.process.channel.messages import JobStatusReport
from yarnflow.process.cluster_settings import ClusterListeners, DriverPlaces
from yarnflow.process.dirs import ClusterDirectory


class FakeSupervisor:
    """Writes down what was started, and the slots that TaskManagers would read then."""

    failure = None
    result: ClusterResult | None = None

    def __init__(
        self,
        directory: ClusterDirectory,
        commands: object,
        *,
        workers: int,
        drivers: DriverPlaces,
        listeners: ClusterListeners,
        kept_logs: int,
    ) -> None:
        assert kept_logs == 100
        self.conf_file = directory.conf_file
        self.on_job_status = listeners.on_job_status
        self.calls: list[tuple[str, object]] = [("made", workers)]

    def start_job_manager(self) -> None:
        self.calls.append(("jobmanager", None))

    def start_spare_driver(self, memory_mib: int) -> None:
        self.calls.append(("driver", memory_mib))

    def start_workers(self) -> None:
        self.calls.append(("workers", self.slots()))

    def add_worker(self) -> None:
        self.calls.append(("worker", self.slots()))

    def slots(self) -> object:
        return json.loads(self.conf_file.read_text()).get("taskmanager.numberOfTaskSlots")

    def await_address(self, timeout_s: float) -> str:
        raise ResourceError("the JobManager did not serve")

    def stop(self, grace_s: float) -> None:
        self.calls.append(("stop", grace_s))


class Gateway:
    """A JobManager with the jobs and, one look after the other, the slots that a test gives it."""

    def __init__(self) -> None:
        self.jobs: list[tuple[int, JobStatus]] = []
        self.slots = [0]

    def submit_job(self, submission: JobSubmission) -> JobSubmitted:
        return JobSubmitted(submission.job_id)

    def list_jobs(self) -> list[JobOverview]:
        return [
            JobOverview(JobId(f"{n:032x}"), "job", status, 0, -1, slots_required=slots)
            for n, (slots, status) in enumerate(self.jobs)
        ]

    def cluster_overview(self) -> ClusterOverview:
        slots = self.slots.pop(0) if len(self.slots) > 1 else self.slots[0]
        return ClusterOverview(1, slots, slots, 0, 0, 0, 0, "0")


class ServingCluster(LocalCluster):
    """Its JobManager serves."""

    def gateway(self) -> Any:
        return self.job_manager

    @cached_property
    def job_manager(self) -> Gateway:
        return Gateway()


def _started(tmp_path: Path, **options: str) -> tuple[LocalCluster, list[tuple[str, object]]]:
    cluster, supervisor = _supervised(LocalCluster, tmp_path, False, options)
    return cluster, supervisor.calls


def _supervised(
    kind: type[LocalCluster], tmp_path: Path, several_jobs: bool, options: Mapping[str, str]
) -> tuple[LocalCluster, FakeSupervisor]:
    made: list[FakeSupervisor] = []

    def make(*arguments: Any, **keywords: Any) -> Any:
        made.append(FakeSupervisor(*arguments, **keywords))
        return made[-1]

    values = {"io.tmp.dirs": str(tmp_path), "minicluster.number-of-taskmanagers": "2", **options}
    configuration = Configuration.from_dict(values, "-D")
    cluster = kind.start(configuration, several_jobs=several_jobs, supervise=make)
    return cluster, made[0]


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


def test_a_local_cluster_that_is_told_to_end_has_failed_its_command(tmp_path: Path) -> None:
    cluster, supervisor = _supervised(LocalCluster, tmp_path, False, {})
    assert cluster.failure() is None
    supervisor.result = ClusterResult(JobStatus.FINISHED)
    failure = cluster.failure()
    assert failure is not None and "told to end" in failure.message
    assert cluster.stop(forced=True) == str(cluster.logs)


def _accepted(cluster: LocalCluster, slots: int) -> None:
    """Hand a job over to a JobManager that serves."""
    cluster.submit(JobSubmission(JobId("a" * 32), "j", ProgramKind.GRAPH, "{}", {}), slots)


def test_a_job_that_wants_more_slots_than_are_left_gets_a_further_task_manager(tmp_path: Path) -> None:
    cluster, supervisor = _supervised(ServingCluster, tmp_path, False, {})
    assert isinstance(cluster, ServingCluster)
    gateway = cluster.job_manager
    _accepted(cluster, 4)
    gateway.jobs = [(4, JobStatus.FINISHED)]
    _accepted(cluster, 4)
    assert supervisor.calls[3:] == [("workers", "2")]
    gateway.jobs, gateway.slots = [(3, JobStatus.RUNNING)], [4, 7]
    _accepted(cluster, 4)
    assert supervisor.calls[4:] == [("worker", "3")]
    assert gateway.slots == [7], "it was not waited for the TaskManager"
    gateway.jobs, gateway.slots = [(7, JobStatus.RUNNING)], [8]
    _accepted(cluster, 1)
    assert supervisor.calls[5:] == [("worker", "1")]
    # a TaskManager that is started again has its slots, at least
    assert supervisor.slots() == "3"
    cluster.stop(forced=True)


def test_where_several_jobs_are_expected_there_are_slots_and_a_spare_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    options = {"minicluster.number-of-taskmanagers": "1"}
    cluster, supervisor = _supervised(ServingCluster, tmp_path, True, options)
    _accepted(cluster, 2)
    assert supervisor.calls[3:] == [("workers", "6")]
    for status in (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.FINISHED):
        supervisor.on_job_status(JobStatusReport(JobId("a" * 32), status))
    assert supervisor.calls[4:] == [], "the driver of the job that has finished is there"
    for status in (JobStatus.FAILED, JobStatus.CANCELED):
        supervisor.on_job_status(JobStatusReport(JobId("a" * 32), status))
    # the supervisor keeps one at most
    assert supervisor.calls[4:] == [("driver", 1600)] * 2
    cluster.stop(forced=True)


def test_where_each_job_has_a_driver_of_its_own_a_spare_is_there_sooner(tmp_path: Path) -> None:
    cluster, supervisor = _supervised(ServingCluster, tmp_path, True, {"driver.idle-timeout": "0 s"})
    _accepted(cluster, 2)
    for status in (JobStatus.CREATED, JobStatus.RUNNING, JobStatus.FINISHED):
        supervisor.on_job_status(JobStatusReport(JobId("a" * 32), status))
    assert supervisor.calls[4:] == [("driver", 1600)] * 2
    cluster.stop(forced=True)


def test_a_forked_copy_of_the_process_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, calls = _started(tmp_path)
    pid = os.getpid()
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: pid + 1)
        cluster.stop(forced=True)
    assert ("stop", 0.0) not in calls and cluster.directory.exists()
    cluster.stop(forced=True)
    assert ("stop", 0.0) in calls


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
