"""What is asked of YARN for which options."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.client.environment.environments import packages_of
from yarnflow.client.environment import check as environment_check
from yarnflow.client.yarn.specification import (
    LOG_SETTINGS,
    application_spec,
    check_admission,
    container_script,
    container_sizes,
    initial_task_managers,
    python_environment,
    shipped_configuration,
    standby_spec,
)
from yarnflow.config.configuration import Configuration
from yarnflow.core.yarn import ClusterLimits, DeploymentMode, LocalResource, Queue
from yarnflow.errors import (
    EnvironmentUnusable,
    InvalidMemory,
    InvalidOption,
    QueueUnavailable,
    RequestTooLarge,
)
from yarnflow.staging.deployment import Deployment
from yarnflow.staging.layout import StagingLayout
from yarnflow.testing.yarn_cluster import FakeYarnCluster

M = DeploymentMode


def conf(**options: str) -> Configuration:
    return Configuration.from_dict({key.replace("_", "."): value for key, value in options.items()}, "-D")


def of(values: dict[str, str]) -> Configuration:
    return Configuration.from_dict(values, "-D")


def deployment(mode: DeploymentMode = M.PER_JOB, **more: object) -> Deployment:
    values: dict[str, Any] = {"python": "/venv/bin/python", "name": "flights", "job_id": "ab" * 16, **more}
    return Deployment("0123456789abcdef", mode, "hdfs://n:1/s", "/s/applications/x", "ann", **values)


def test_master_has_room_for_the_job_manager_and_its_drivers() -> None:
    small = {"jobmanager.memory.process.size": "700m", "driver.memory.process.size": "1500m"}
    assert container_sizes(of(small), M.PER_JOB).master_mib == 2200
    assert container_sizes(of(small), M.SESSION).master_mib == 3700
    assert container_sizes(of({**small, "yarn.appmaster.drivers": "3"}), M.APPLICATION).master_mib == 5200


def test_vcores_are_slots_unless_set() -> None:
    assert container_sizes(of({"taskmanager.numberOfTaskSlots": "4"}), M.PER_JOB).task_manager_vcores == 4
    chosen = of({"taskmanager.numberOfTaskSlots": "4", "yarn.containers.vcores": "2"})
    assert container_sizes(chosen, M.PER_JOB).task_manager_vcores == 2


@pytest.mark.parametrize(
    "values",
    [
        {"jobmanager.memory.process.size": "100m"},
        {"taskmanager.memory.process.size": "500m"},
        {"driver.memory.process.size": "500m"},
    ],
)
def test_too_little_memory_is_said_before_yarn_is_asked(values: dict[str, str]) -> None:
    with pytest.raises(InvalidMemory, match=next(iter(values))):
        container_sizes(of(values), M.PER_JOB)


@pytest.mark.parametrize(("required", "slots", "expected"), [(0, 2, 0), (1, 2, 1), (4, 2, 2), (5, 2, 3)])
def test_task_managers_hold_all_slots(required: int, slots: int, expected: int) -> None:
    sizes = container_sizes(of({"taskmanager.numberOfTaskSlots": str(slots)}), M.PER_JOB)
    assert initial_task_managers(required, sizes) == expected


def test_admission() -> None:
    yarn = FakeYarnCluster()
    sizes = container_sizes(conf(), M.PER_JOB)
    check_admission(yarn, conf(), sizes)
    with pytest.raises(QueueUnavailable, match="root.default"):
        check_admission(yarn, conf(yarn_application_queue="none"), sizes)
    yarn.cluster_limits = ClusterLimits(2000, 8, 4000, 4000, 8, 8, 2)
    with pytest.raises(RequestTooLarge, match="2240.*2000"):
        check_admission(yarn, conf(), sizes)
    yarn.cluster_limits = ClusterLimits(4000, 8, 4000, 4000, 8, 8, 2)
    large = of({"taskmanager.memory.process.size": "5000m"})
    with pytest.raises(RequestTooLarge, match="TaskManager.*4000"):
        check_admission(yarn, large, container_sizes(large, M.PER_JOB))
    yarn.all_queues = [Queue("default", "root.default", state="STOPPED")]
    with pytest.raises(QueueUnavailable, match="stopped"):
        check_admission(yarn, conf(), sizes)


def test_specification() -> None:
    options = of(
        {
            "yarn.application.name": "Nightly",
            "yarn.application.queue": "small",
            "yarn.application.node-label": "gpu",
            "yarn.tags": "team-a, ,nightly",
            "yarn.application-attempts": "3",
            "yarn.heartbeat.interval": "500 ms",
            "yarn.view.acls": "bob",
        }
    )
    everywhere = {"yarnflow-dist": LocalResource("hdfs://n:1/d.zip", archive=True)}
    spec = application_spec(
        options,
        deployment(initial_task_managers=3),
        container_sizes(options, M.PER_JOB),
        everywhere,
        {"submission.json": LocalResource("hdfs://n:1/s.json")},
    )
    assert (spec.name, spec.queue, spec.max_attempts, spec.view_acls) == ("Nightly", "small", 3, "bob")
    assert spec.heartbeat_interval_ms == 500 and spec.initial_task_managers == 3
    assert spec.master.node_label == spec.task_manager.node_label == spec.node_label == "gpu"
    assert set(spec.master.resources) == {"yarnflow-dist", "submission.json"}
    assert set(spec.task_manager.resources) == {"yarnflow-dist"}
    assert spec.tags == (
        "yarnflow", "yarnflow-yarn-per-job", "yarnflow-0123456789abcdef", f"yarnflow-job-{'ab' * 16}",
        "team-a", "nightly",
    )  # fmt: skip
    assert "yarn.master_main" in spec.master.script and "yarn.taskmanager_main" in spec.task_manager.script


def test_variables_of_containers() -> None:
    options = of(
        {
            "containerized.master.env.TZ": "UTC",
            "containerized.taskmanager.env.TZ": "CET",
            "driver.placement": "container",
            "high-availability.type": "zookeeper",
        }
    )
    spec = application_spec(options, deployment(), container_sizes(options, M.PER_JOB), {}, {})
    assert spec.master.environment == {"TZ": "UTC"} and spec.task_manager.environment == {"TZ": "CET"}
    assert spec.driver is not None and spec.driver.environment == {"TZ": "UTC"}


def test_name_of_the_job_and_label_of_the_task_managers() -> None:
    options = of({"yarn.taskmanager.node-label": "ssd", "yarn.application.node-label": "gpu"})
    spec = application_spec(options, deployment(), container_sizes(options, M.PER_JOB), {}, {})
    assert spec.name == "flights" and spec.task_manager.node_label == "ssd"


@pytest.mark.parametrize("tag", ["x" * 101, "größe"])
def test_tags_yarn_would_refuse(tag: str) -> None:
    options = of({"yarn.tags": tag})
    with pytest.raises(InvalidOption, match="yarn.tags"):
        application_spec(options, deployment(), container_sizes(options, M.PER_JOB), {}, {})


@pytest.mark.parametrize("python", ["environment/bin/python", "/opt/my envs/x/bin/python"])
def test_script_runs_our_module_with_our_package_and_configuration(python: str, tmp_path: Path) -> None:
    place = tmp_path / "a container"
    program = Path(python) if python.startswith("/") else place / python
    if python.startswith("/"):
        program = tmp_path / python[1:]
        python = str(program)
    program.parent.mkdir(parents=True)
    place.mkdir(exist_ok=True)
    program.write_text('#!/bin/sh\necho "$PYTHONPATH|$HADOOP_CONF_DIR|$*"\n')
    program.chmod(0o755)
    script = container_script("some.module", python)
    shown = subprocess.run(
        ["bash", "-c", script], cwd=place, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert shown == f"{place}/yarnflow-dist:{place}|{place}/hadoop-conf|-P -m some.module"
    assert shlex.split(script)[-3:] == ["-P", "-m", "some.module"]


def test_shipped_options() -> None:
    options = of({"pipeline.job-key": "k", "yarnflow.log.config-file": "/l.yaml"})
    assert _shipped(options) == {
        "execution.checkpointing.dir": "hdfs://n/user/ann/.yarnflow/checkpoints",
        "yarnflow.log.config-file": LOG_SETTINGS,
    }
    own = {"execution.checkpointing.dir": "hdfs://n/mine"}
    assert _shipped(of(own)) == own


def test_places_of_a_highly_available_cluster() -> None:
    shipped = _shipped(of({"high-availability.type": "zookeeper"}))
    assert shipped["high-availability.cluster-id"] == "yarnflow-0123456789abcdef"
    assert shipped["high-availability.storageDir"] == "hdfs://n/user/ann/.yarnflow/ha"
    own = {
        "high-availability.type": "zookeeper",
        "high-availability.cluster-id": "mine",
        "high-availability.storageDir": "hdfs://n/ha",
        "execution.checkpointing.dir": "hdfs://n/mine",
    }
    assert _shipped(of(own)) == own


def _shipped(options: Configuration) -> dict[str, str]:
    layout = StagingLayout("/user/ann/.yarnflow")
    return shipped_configuration(options, layout, "hdfs://n", "0123456789abcdef")


@pytest.mark.parametrize(
    ("mode", "masters", "drivers", "workers"), [("cold", 2, 1, 0), ("warm", 2, 2, 0), ("hot", 2, 2, 3)]
)
def test_masters_of_a_highly_available_cluster(mode: str, masters: int, drivers: int, workers: int) -> None:
    options = of({"high-availability.type": "zookeeper", "high-availability.standby-mode": mode})
    sizes = container_sizes(options, M.PER_JOB)
    assert sizes.masters == masters and sizes.drivers == 1
    assert sizes.master_mib - container_sizes(conf(), M.PER_JOB).master_mib == (drivers - 1) * 1600
    first = application_spec(
        options, replace(deployment(), initial_task_managers=3, masters=2), sizes, {}, {}
    )
    standby = standby_spec(options, first)
    assert first.masters == standby.masters == 2
    assert set(standby.tags) == {*first.tags, "yarnflow-standby"}
    assert standby.master.environment == {"YARNFLOW_STANDBY": "1"} and not first.master.environment
    assert (first.initial_task_managers, standby.initial_task_managers) == (3, workers)


def test_a_queue_needs_room_for_all_masters() -> None:
    yarn = FakeYarnCluster()
    yarn.all_queues = [Queue("default", "root.default", max_capacity_percent=50)]
    options = of({"high-availability.type": "zookeeper"})
    alone, together = container_sizes(conf(), M.PER_JOB), container_sizes(options, M.PER_JOB)
    needed_mib = alone.master_mib + alone.task_manager_mib
    yarn.cluster_limits = replace(yarn.cluster_limits, total_memory_mib=2 * needed_mib)
    check_admission(yarn, conf(), alone)
    with pytest.raises(RequestTooLarge, match="2 masters.*high-availability.jobmanagers"):
        check_admission(yarn, options, together)


class TestPythonEnvironment:
    """``python.environment``."""

    def test_default_is_this_interpreter(self) -> None:
        found = python_environment(conf())
        assert found.archive is None and Path(found.interpreter).exists()
        assert Path(found.interpreter).is_relative_to(sys.prefix)

    def test_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        checked: list[Path] = []
        monkeypatch.setattr(environment_check, "require_usable", checked.append)
        found = python_environment(conf(python_environment=str(tmp_path)))
        assert found.interpreter == f"{tmp_path}/bin/python" and found.archive is None
        assert checked == [tmp_path]

    def test_directory_without_python(self, tmp_path: Path) -> None:
        packages_of(tmp_path).mkdir(parents=True)
        with pytest.raises(EnvironmentUnusable, match="bin/python"):
            python_environment(conf(python_environment=str(tmp_path)))

    def test_directory_that_is_not_here(self) -> None:
        with pytest.raises(EnvironmentUnusable, match="/opt/none"):
            python_environment(conf(python_environment="/opt/none"))
        assert python_environment(conf(python_environment="file:///opt/none")).interpreter == (
            "/opt/none/bin/python"
        )

    def test_archive(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(environment_check, "require_usable", lambda path: None)
        archive = tmp_path / "env.tar.gz"
        archive.write_bytes(b"")
        found = python_environment(conf(python_environment=str(archive)))
        assert (found.interpreter, found.archive) == ("environment/bin/python", archive)

    def test_remote_archive(self) -> None:
        found = python_environment(conf(python_environment="hdfs:///envs/e.tar.gz"))
        assert found.archive_uri == "hdfs:///envs/e.tar.gz" and found.interpreter == "environment/bin/python"


CONTAINERS = {"driver.placement": "container", "high-availability.type": "zookeeper"}


def test_drivers_with_containers_of_their_own() -> None:
    options = of({**CONTAINERS, "driver.memory.process.size": "2000m", "yarn.driver.vcores": "3"})
    sizes = container_sizes(options, M.SESSION)
    assert (sizes.master_mib, sizes.driver_mib, sizes.driver_vcores) == (640, 2128, 3)
    assert sizes.drivers == 0, "as many as YARN gives"
    limited = of({**CONTAINERS, "yarn.appmaster.drivers": "7", "yarn.driver.memory-overhead": "0"})
    assert container_sizes(limited, M.SESSION).drivers == 7
    assert container_sizes(limited, M.SESSION).driver_mib == 1600
    files = {"secret": LocalResource("hdfs://n/secret")}
    driver = application_spec(options, deployment(M.SESSION), sizes, files, {"job": files["secret"]}).driver
    assert driver is not None and (driver.memory_mib, driver.vcores) == (2128, 3)
    assert driver.resources == files and "yarnflow.entrypoint.yarn.driver_main" in driver.script
    assert container_sizes(of({}), M.SESSION).driver_mib == 0
    assert application_spec(of({}), deployment(), container_sizes(of({}), M.PER_JOB), {}, {}).driver is None
    yarn = FakeYarnCluster()
    yarn.cluster_limits = ClusterLimits(2000, 8, 8000, 8000, 8, 8, 2)
    with pytest.raises(RequestTooLarge, match="2128 MiB for the driver.*2000.*yarn.driver.memory-overhead"):
        check_admission(yarn, options, sizes)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("high-availability.type", "none", "needs high-availability.type: zookeeper"),
        ("high-availability.standby-mode", "warm", "set it to cold"),
        ("high-availability.standby-mode", "hot", "set it to cold"),
    ],
)
def test_what_does_not_go_with_drivers_in_containers(option: str, value: str, said: str) -> None:
    with pytest.raises(InvalidOption, match=f"driver.placement.*{said}"):
        container_sizes(of({**CONTAINERS, option: value}), M.SESSION)
