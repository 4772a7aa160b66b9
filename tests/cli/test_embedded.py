"""The executor of a program that no command runs."""

from __future__ import annotations

import configparser
import importlib
import logging
import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.fakes import FakeConnection
from yarnflow.api.executor import EXECUTOR_GROUP
from yarnflow.cli import embedded
from yarnflow.cli import main as command
from yarnflow.cli.embedded import EmbeddedExecutor
from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import JobId
from yarnflow.core.messages import ErrorInfo, ProgramKind
from yarnflow.core.states import JobStatus
from yarnflow.errors import ConfigError, ProgramError, ResourceError, UserCodeError
from yarnflow.graph.job_graph import JobGraph
from yarnflow.testing.gateways.dispatcher import FakeDispatcher

S = JobStatus
GRAPH = JobGraph(JobId("ab" * 16), "flights", ProgramKind.GRAPH)


class Clusters:
    """In place of ``LocalCluster``: hands out clusters that exist only in the test."""

    def __init__(self) -> None:
        self.dispatcher = FakeDispatcher()
        self.started: list[FakeConnection] = []
        self.configurations: list[Configuration] = []
        self.stdout_fds: list[int] = []

    def start(
        self, configuration: Configuration, *, driver_stdout_fd: int, several_jobs: bool
    ) -> FakeConnection:
        assert several_jobs
        self.configurations.append(configuration)
        self.stdout_fds.append(driver_stdout_fd)
        self.started.append(FakeConnection(self.dispatcher))
        return self.started[-1]


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Clusters:
    fakes = Clusters()
    monkeypatch.setattr(embedded, "LocalCluster", fakes)
    return fakes


@pytest.fixture
def executor(clusters: Clusters) -> Iterator[EmbeddedExecutor]:
    made = EmbeddedExecutor()
    yield made
    made.close()


def test_the_installed_package_declares_it() -> None:
    parser = configparser.ConfigParser()
    parser.read(Path(__file__).parents[2] / "setup.cfg")
    (line,) = parser["options.entry_points"][EXECUTOR_GROUP].split("\n")[1:]
    module, _, name = line.partition("=")[2].strip().partition(":")
    assert getattr(importlib.import_module(module), name) is EmbeddedExecutor


def test_one_cluster_for_all_jobs(executor: EmbeddedExecutor, clusters: Clusters) -> None:
    assert clusters.started == []
    for _ in range(2):
        assert executor.submit(GRAPH).get_job_execution_result().net_runtime_ms > 0
    (cluster,) = clusters.started
    assert [submission.name for submission in clusters.dispatcher.submissions] == ["flights"] * 2
    executor.close()
    executor.close()
    assert cluster.stops == [(True, False)]
    executor.submit(GRAPH)
    assert len(clusters.started) == 2


def test_options_are_those_of_submit_with_target_local(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "yarnflow-conf.yaml").write_text(
        "parallelism.default: 3\nexecution.target: remote\nexecution.attached: false\n"
    )
    monkeypatch.setenv("YARNFLOW_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("YARNFLOW_CONF_PIPELINE_NAME", "from outside")
    executor = EmbeddedExecutor()
    assert executor.configuration["parallelism.default"] == "3"
    assert executor.configuration["execution.target"] == "local"
    executor.submit(GRAPH).get_job_execution_result()
    assert clusters.configurations[0].to_dict() == executor.configuration
    assert clusters.dispatcher.submissions[0].configuration["pipeline.name"] == "from outside"
    executor.close()


def test_wrong_options_are_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("YARNFLOW_CONF_DIR", str(tmp_path / "missing"))
    with pytest.raises(ConfigError, match="missing"):
        EmbeddedExecutor()


def test_a_cluster_that_has_failed_is_replaced(executor: EmbeddedExecutor, clusters: Clusters) -> None:
    executor.submit(GRAPH)
    clusters.started[0].lost = ResourceError("the JobManager ended")
    executor.submit(GRAPH)
    assert [len(cluster.stops) for cluster in clusters.started] == [1, 0]


def test_an_interrupt_before_the_job_was_accepted_ends_the_cluster(
    executor: EmbeddedExecutor, clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor.submit(GRAPH)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(clusters.started[0], "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        executor.submit(GRAPH)
    assert clusters.started[0].stops == [(True, False)]


def test_no_cluster_inside_a_cluster(
    executor: EmbeddedExecutor, clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("YARNFLOW_LOG_FILE", "/logs/driver-1.log")
    with pytest.raises(ProgramError, match="process of a cluster"):
        executor.submit(GRAPH)
    assert clusters.started == []


def test_a_forked_copy_has_no_cluster(executor: EmbeddedExecutor, clusters: Clusters) -> None:
    executor.submit(GRAPH)
    executor._lock.acquire()  # another thread is about to start one
    executor._forget()
    executor.submit(GRAPH)
    assert len(clusters.started) == 2


def test_what_a_job_printed_stands_there_when_it_has_ended(
    executor: EmbeddedExecutor, clusters: Clusters, capsys: pytest.CaptureFixture[str]
) -> None:
    client = executor.submit(GRAPH)
    os.write(clusters.stdout_fds[0], b"1> +I[a, 1]\nthe last line has no end")
    client.get_job_execution_result()
    assert capsys.readouterr().out == "1> +I[a, 1]\nthe last line has no end"


@pytest.mark.parametrize("caught", [True, False])
def test_logs_stay_when_a_failure_has_ended_the_program(
    executor: EmbeddedExecutor,
    clusters: Clusters,
    caught: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    clusters.dispatcher.states = [S.RUNNING, S.FAILED]
    clusters.dispatcher.error = ErrorInfo("USER_CODE", "ValueError: bad", "Traceback …\nValueError: bad\n")
    with pytest.raises(UserCodeError) as error:
        executor.submit(GRAPH).get_job_execution_result()
    # as the interpreter leaves it
    monkeypatch.setattr(sys, "last_value", None if caught else error.value, raising=False)
    executor.close()
    assert clusters.started[0].stops == [(True, not caught)]
    assert ("Logs are in /kept/logs" in caplog.text) is not caught


def test_states_are_information_and_a_job_that_is_cut_off_a_warning(
    executor: EmbeddedExecutor, clusters: Clusters, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "yarnflow")
    executor.submit(GRAPH).get_job_execution_result()
    assert "switched from state RUNNING to FINISHED" in caplog.text
    assert {record.levelno for record in caplog.records} == {logging.INFO}
    clusters.dispatcher.states = [S.RUNNING]
    executor.submit(GRAPH)
    executor.close()
    assert "Job flights ends with its cluster" in caplog.text


def test_python_m_yarnflow_is_submit_with_target_local(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(command, "main", lambda arguments: calls.append(arguments))
    monkeypatch.setattr(sys, "argv", ["/yarnflow/__main__.py", "-p", "2", "job.py", "--day", "1"])
    with pytest.raises(SystemExit):
        runpy.run_module("yarnflow", run_name="__main__")
    processors = f"--default-parallelism={os.cpu_count()}"
    assert calls == [["submit", "--target", "local", processors, "-p", "2", "job.py", "--day", "1"]]


def test_a_job_has_a_subtask_for_each_processor(
    executor: EmbeddedExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert executor.default_parallelism == 6


def test_older_keys_are_told_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("YARNFLOW_CONF_STATE_CHECKPOINTS_DIR", "/checkpoints")
    executor = EmbeddedExecutor()
    assert executor.configuration["execution.checkpointing.dir"] == "/checkpoints"
    assert [message for message in caplog.messages if "is an older key of" in message]
