"""Where a user's clusters are looked for, and that none of them holds up a command."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.client.fakes import FakeConnection
from tests.client.test_local import JOB, OTHER, Machine, job
from tests.client.yarn.submits import submit_world
from tests.client.yarn.yarn_fakes import World
from tests.patience import PATIENCE
from yarnflow.client import local, targets
from yarnflow.client.discovery.asking import Candidate, ask, within
from yarnflow.client.discovery.clusters import Clusters
from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import JobId
from yarnflow.core.yarn import DeploymentMode
from yarnflow.errors import (
    ApplicationNotFound,
    InvalidOption,
    JobNotFound,
    RpcUnavailable,
    YarnflowError,
    YarnUnavailable,
)
from yarnflow.staging.layout import APPLICATION_TAG, deployment_tag, job_tag
from yarnflow.testing.gateways.dispatcher import FakeDispatcher

M = DeploymentMode
HADOOP = {"HADOOP_CONF_DIR": "/etc/hadoop"}
THIRD = JobId("ef" * 16)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path / "clusters")
    monkeypatch.setattr(local, "_by_thrift", lambda configuration: made.open)
    return made


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return submit_world(tmp_path, monkeypatch)


def standalone(
    monkeypatch: pytest.MonkeyPatch, *job_ids: JobId, error: YarnflowError | None = None
) -> FakeDispatcher:
    """The standalone cluster of the configuration, or why there is none."""
    dispatcher = FakeDispatcher()
    dispatcher.submissions += map(job, job_ids)

    def connect(target: targets.Target, configuration: object, *_: object) -> FakeConnection:
        if error is not None:
            raise error
        return FakeConnection(dispatcher, owned=False)

    monkeypatch.setattr(targets.Target, "connect", connect)
    return dispatcher


def application(world: World, number: int, *job_ids: JobId, tagged: str = "") -> FakeDispatcher:
    deployment = f"{number}" * 16
    tags = (APPLICATION_TAG, f"{APPLICATION_TAG}-{M.SESSION.target}", deployment_tag(deployment))
    more = (job_tag(tagged),) if tagged else ()
    world.add(f"application_1_000{number}", deployment, mode=M.SESSION, tags=(*tags, *more))
    dispatcher = world.serve(f"application_1_000{number}", deployment)
    dispatcher.submissions += map(job, job_ids)
    return dispatcher


def clusters(machine: Machine, environ: dict[str, str] | None = None, **options: str) -> Clusters:
    values = {key.replace("__", "-").replace("_", "."): value for key, value in options.items()}
    configuration = machine.configuration.with_values(values, "yarnflow-conf.yaml")
    return Clusters(configuration, environ or {})


def test_jobs_of_all_clusters(machine: Machine, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.start("localhost:7", JOB)
    standalone(monkeypatch, OTHER)
    application(world, 1, THIRD)
    listings, silent = clusters(machine, HADOOP).listings()
    assert [(one.candidate.target, [j.job_id for j in one.jobs]) for one in listings] == [
        ("local", [JOB]),
        ("remote", [OTHER]),
        ("yarn-session", [THIRD]),
    ]
    assert silent == []
    assert listings[2].candidate.named_by == "-Dyarn.application.id=application_1_0001"


def test_yarn_is_left_alone_where_hadoop_is_not_configured(
    machine: Machine, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    standalone(monkeypatch, OTHER)
    world.yarn.error = YarnUnavailable("nobody was to be asked")
    listings, silent = clusters(machine).listings()
    assert len(listings) == 1 and silent == []


def test_what_does_not_answer_is_told_and_keeps_nobody(
    machine: Machine, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    standalone(monkeypatch, OTHER)
    application(world, 1, JOB).down = RpcUnavailable("nobody listens")
    frozen, over = application(world, 2), threading.Event()

    def freeze(method: str) -> None:
        over.wait(PATIENCE.thread_s)

    frozen.before = freeze
    listings, silent = clusters(machine, HADOOP, client_discovery_timeout="3 s").listings()
    over.set()
    assert [one.candidate.target for one in listings] == ["remote"]
    assert [str(one) for one in silent] == [
        "application application_1_0001 (flights): nobody listens",
        "application application_1_0002 (flights): no answer within 3 s (client.discovery.timeout)",
    ]


def test_yarn_that_is_down_is_told(
    machine: Machine, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    standalone(monkeypatch, OTHER)
    world.yarn.error = YarnUnavailable("no ResourceManager answers")
    listings, silent = clusters(machine, HADOOP).listings()
    assert len(listings) == 1 and [str(one) for one in silent] == ["YARN: no ResourceManager answers"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, []),
        ({"jobmanager_rpc_address": "h"}, ["standalone cluster h:6123: nobody listens"]),
    ],
)
def test_a_standalone_cluster_is_missed_only_where_somebody_has_named_it(
    options: dict[str, Any], told: list[str], machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.start("localhost:7", JOB)
    standalone(monkeypatch, error=RpcUnavailable("nobody listens"))
    listings, silent = clusters(machine, **options).listings()
    assert len(listings) == 1 and [str(one) for one in silent] == told


def test_a_job_is_found_wherever_it_is(
    machine: Machine, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.start("localhost:7", JOB)
    standalone(monkeypatch, OTHER)
    application(world, 1)
    on_yarn = application(world, 2, THIRD)
    found = clusters(machine, HADOOP)
    assert found.with_job(JOB).named_by == "-t local"
    assert found.with_job(OTHER).named_by == "-m host:1"
    assert found.with_job(THIRD).gateway() is on_yarn


def test_an_application_of_its_own_is_asked_alone(
    machine: Machine, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    standalone(monkeypatch)
    other = application(world, 1)
    application(world, 2, THIRD, tagged=THIRD)
    asked: list[str] = []
    other.before = asked.append
    assert clusters(machine, HADOOP).with_job(THIRD).named_by.endswith("application_1_0002")
    assert asked == []


def test_several_that_have_the_job_are_named(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.start("localhost:7", JOB)
    machine.start("localhost:8", JOB)
    standalone(monkeypatch)
    with pytest.raises(InvalidOption, match=f"2 clusters of this user have job {JOB}") as caught:
        clusters(machine).with_job(JOB)
    assert "localhost:7" in str(caught.value) and "localhost:8" in str(caught.value)
    assert machine.gateways.closes == 2


def test_a_job_that_nobody_has(machine: Machine, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.start("localhost:7", OTHER)
    standalone(monkeypatch)
    application(world, 1)
    with pytest.raises(JobNotFound, match=f"no job {JOB} on the clusters of this user") as caught:
        clusters(machine, HADOOP).with_job(JOB)
    assert "localhost:7" in str(caught.value) and "application_1_0001" in str(caught.value)


def test_the_only_one_that_does_not_answer_is_the_one(
    machine: Machine, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be changing its leader, which the verb waits for."""
    standalone(monkeypatch)
    application(world, 1).down = RpcUnavailable("nobody leads")
    assert clusters(machine, HADOOP).with_job(JOB).named_by.endswith("application_1_0001")


def test_several_that_do_not_answer_may_have_it(
    machine: Machine, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not said that there is no such job: whoever asks again may hear of it."""
    standalone(monkeypatch)
    for number in (1, 2):
        application(world, number).down = RpcUnavailable("nobody leads")
    with pytest.raises(RpcUnavailable, match="may be where nobody answered: application") as caught:
        clusters(machine, HADOOP).with_job(JOB)
    assert caught.value.retryable and "-m" not in str(caught.value)


def test_no_cluster_at_all(machine: Machine, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    standalone(monkeypatch, error=RpcUnavailable("there is no standalone cluster"))
    with pytest.raises(RpcUnavailable, match="no local cluster of this user runs, and there is no"):
        clusters(machine).with_job(JOB)
    with pytest.raises(JobNotFound, match="no application of yarnflow runs on YARN, and no local cluster"):
        clusters(machine, HADOOP).with_job(JOB)
    # where YARN is, and has been asked, nothing is configured wrongly
    assert isinstance(clusters(machine, HADOOP).nobody(), ApplicationNotFound)
    assert isinstance(clusters(machine).nobody(), RpcUnavailable)


def test_only_applications_of_a_mode(machine: Machine, world: World) -> None:
    application(world, 1, JOB)
    listings, _ = clusters(machine, HADOOP).listings(M.SESSION)
    assert len(listings) == 1
    assert clusters(machine, HADOOP).listings(M.PER_JOB) == ([], [])


def test_of_several_applications_of_a_mode_the_one_that_has_the_job(machine: Machine, world: World) -> None:
    found = clusters(machine, HADOOP)
    first = application(world, 1, OTHER)
    assert found.with_job_on_yarn(JOB, M.SESSION) is None, "there is one, which the verb asks itself"
    application(world, 2, JOB)
    having = found.with_job_on_yarn(JOB, M.SESSION)
    assert having is not None and having.named_by.endswith("application_1_0002")
    with pytest.raises(JobNotFound, match="application_1_0001 .*application_1_0002"):
        found.with_job_on_yarn(THIRD, M.SESSION)
    first.down = RpcUnavailable("nobody leads")
    with pytest.raises(RpcUnavailable, match="application_1_0001 .*nobody leads"):
        found.with_job_on_yarn(THIRD, M.SESSION)


def test_whoever_answers_too_late_is_let_go_of() -> None:
    begun, over = threading.Event(), threading.Event()
    connection = FakeConnection(FakeDispatcher(), owned=False)
    stopped = threading.Event()

    def stop(*, forced: bool, failed: bool) -> str:
        stopped.set()
        return ""

    connection.stop = stop  # type: ignore[method-assign]

    def question(gateway: object) -> int:
        begun.set()
        over.wait(PATIENCE.thread_s)
        return 1

    found, silent = ask([Candidate("slow", "remote", "", lambda: connection)], question, 100)
    assert found == [] and len(silent) == 1 and begun.wait(PATIENCE.thread_s) and not stopped.is_set()
    over.set()
    assert stopped.wait(PATIENCE.thread_s)


def _hanging(over: threading.Event) -> Callable[[], int]:
    return lambda: (over.wait(PATIENCE.thread_s) and 1) or 0


def test_an_action_that_hangs_is_given_up() -> None:
    over = threading.Event()
    with pytest.raises(RpcUnavailable, match="no answer within 0.1 s"):
        within(_hanging(over), 100, "hanging")
    over.set()
    assert within(_hanging(over), 60_000, "quick") == 1


def test_the_configuration_is_read(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    standalone(monkeypatch, OTHER)
    configuration = Configuration.from_dict({"client.discovery.timeout": "1 h"}, "test")
    assert Clusters(configuration, {})._timeout_ms == 3_600_000
