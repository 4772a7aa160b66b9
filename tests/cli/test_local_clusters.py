"""Verbs about jobs find the local clusters of this user, which no option has to name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.client.fakes import checkpoint
from tests.client.test_local import JOB, OTHER, Machine
from tests.graph import graphs as g
from yarnflow.cli.main import main
from yarnflow.cli.restore_options import noting_lost_state
from yarnflow.client import local
from yarnflow.config.configuration import Configuration
from yarnflow.core.checkpoint.messages import AfterSavepoint, CheckpointKind
from yarnflow.core.states import JobStatus
from yarnflow.graph.connectors.sources import RateSource
from yarnflow.graph.generation.chaining import create_job_graph
from yarnflow.graph.job_graph import JobGraph
from yarnflow.testing.gateways.dispatcher import FakeDispatcher

ENDLESS = create_job_graph(g.straight([g.SOURCE, g.PRINT]), JOB)
SAVEPOINT = checkpoint(7, kind=CheckpointKind.SAVEPOINT, path="file:///sp/savepoint-ababab-1")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """Two programs with a job each; no standalone cluster."""
    monkeypatch.delenv("YARNFLOW_CONF_DIR", raising=False)
    made = Machine(tmp_path / "clusters")
    made.start("localhost:7", OTHER)
    made.start("localhost:8", JOB)
    monkeypatch.setattr(local, "_by_thrift", lambda configuration: made.open)
    yield made


def _of(machine: Machine) -> FakeDispatcher:
    return machine.gateways.dispatchers["localhost:8"]


@pytest.mark.parametrize("target", [[], ["-t", "local"]])
def test_list_shows_the_jobs_of_all(
    target: list[str], machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", *target]) == 0
    out = capsys.readouterr().out
    assert JOB in out and OTHER in out and out.count("RUNNING") == 2
    assert machine.gateways.closes == 2


@pytest.mark.parametrize("target", [[], ["-t", "local"]])
def test_a_job_is_canceled_where_it_runs(
    target: list[str], machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    _of(machine).states = [JobStatus.RUNNING]
    assert main(["cancel", *target, JOB]) == 0
    assert capsys.readouterr().out.endswith(f"Cancelled job {JOB}.\n")
    assert _of(machine).cancelled == [JOB]
    assert machine.gateways.dispatchers["localhost:7"].cancelled == []


def test_a_job_is_stopped_with_a_savepoint(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    _of(machine).states = [JobStatus.RUNNING]
    _of(machine).outcomes = [SAVEPOINT]
    assert main(["savepoint", JOB, "file:///sp"]) == 0
    assert capsys.readouterr().out == f"{SAVEPOINT.external_path}\n"
    assert main(["stop", "--detached", JOB, "-p", "file:///sp"]) == 0
    assert [request.after for _, request in _of(machine).requests] == [
        AfterSavepoint.CONTINUE,
        AfterSavepoint.STOP,
    ]


def test_the_token_of_its_rest_interface(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["token", JOB]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("write-token\n", "REST interface: http://jm:8081\n")
    assert main(["token", JOB, "--read-only"]) == 0
    assert capsys.readouterr().out == "read-token\n"


def test_a_link_to_its_dashboard(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboard", JOB]) == 0
    link = capsys.readouterr().out
    assert link.startswith("http://jm:8081/?code=write-") and link.endswith(f"#/job/{JOB}\n")
    assert "write-token" not in link
    assert main(["dashboard", JOB, "--read-only", "--json"]) == 0
    assert "http://jm:8081/?code=read-" in json.loads(capsys.readouterr().out)["link"]


@pytest.mark.parametrize("verb", ["info", "checkpoints", "checkpoint", "drill"])
def test_other_verbs_find_it(verb: str, machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    _of(machine).states = [JobStatus.RUNNING]
    _of(machine).outcomes = [checkpoint(9)]
    called: list[str] = []
    _of(machine).before = called.append
    arguments = [verb, "driver", JOB] if verb == "drill" else [verb, JOB]
    status = main(arguments)
    # a drill asks first, and nobody is there
    assert status == (12 if verb == "drill" else 0), capsys.readouterr().err
    asked = {"info": "job_details", "checkpoints": "job_checkpoints", "checkpoint": "trigger_checkpoint"}
    assert asked.get(verb, "inject_fault") in called


@pytest.mark.parametrize(
    "options, status, said",
    [
        (["-m", "localhost:9"], 10, "the secret of that cluster"),
        (["-Djobmanager.rpc.port=9"], 72, "there is no standalone cluster"),
        (["-t", "remote"], 72, "there is no standalone cluster"),
    ],
)
def test_a_standalone_cluster_that_is_named_is_meant(
    options: list[str], status: int, said: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cancel", *options, JOB]) == status
    assert f"error: {said}" in capsys.readouterr().err
    assert not machine.secrets, "local clusters were looked for"


def test_drills_of_several_clusters_need_the_job(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["drill", "driver"]) == 12
    assert "or name the job" in capsys.readouterr().err


def _notes(graph: JobGraph, **options: str) -> list[str]:
    said: list[str] = []
    checked: list[JobGraph] = []
    check = noting_lost_state(checked.append, Configuration.from_dict(options, "test"), said.append)
    check(graph)
    check(graph)
    assert checked == [graph, graph]
    return said


def test_who_submits_a_job_without_an_end_hears_once_that_its_state_will_be_lost() -> None:
    (line,) = _notes(ENDLESS)
    assert line.startswith(f"Job {ENDLESS.name} does not end by itself, and its state goes with this command")
    assert "-Dexecution.checkpointing.dir=DIR" in line and "yarnflow stop JOB -p DIR" in line


def test_state_that_stays_or_ends_with_its_input_is_no_news() -> None:
    directory = {"execution.checkpointing.dir": "file:///checkpoints"}
    assert _notes(ENDLESS, **directory) == []
    assert _notes(replace(ENDLESS, configuration=directory)) == []
    assert _notes(create_job_graph(g.straight([RateSource(1, 5), g.PRINT]), JOB)) == []
