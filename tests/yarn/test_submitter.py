from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from yarnflow.config.hadoop.conf import HadoopConf
from yarnflow.core.yarn import (
    Application,
    ApplicationSpec,
    ApplicationState,
    ClusterLimits,
    ContainerSpec,
    FinalStatus,
    LocalResource,
)
from yarnflow.errors import (
    QueueUnavailable,
    RequestTooLarge,
    StorageDenied,
    StorageUnavailable,
    YarnError,
    YarnUnavailable,
)
from yarnflow.testing.skein_clients import FakeSkeinClient
from yarnflow.testing.yarn_cluster import FakeYarnCluster
from yarnflow.yarn.class_path import ClassPath
from yarnflow.yarn.library import skein
from yarnflow.yarn.master_jar import SKEIN_JAR_NAME, skein_jar
from yarnflow.yarn.submitter import Connection, SkeinSubmitter, impatient_configuration

SPEC = ApplicationSpec(
    "a", "default", ("yarnflow", "yarnflow-0123"), ContainerSpec(1, 1, "x"), ContainerSpec(1, 1, "x")
)


def _application(application_id: str, state: ApplicationState, tags: tuple[str, ...]) -> Application:
    return Application(application_id, "a", "u", "default", state, FinalStatus.UNDEFINED, tags)


class FakeJvm:
    def __init__(self) -> None:
        self.ends: list[str] = []

    def kill(self) -> None:
        self.ends.append("kill")

    def close(self) -> None:
        self.ends.append("close")

    def last_output(self) -> str:
        return "ERROR no more memory"


class Fixture:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster = FakeYarnCluster()
        self.cluster.cluster_limits = ClusterLimits(8, 8, 8, 8, 8, 8, 1)
        self.jvm = FakeJvm()
        self.client = FakeSkeinClient()
        self.connects = 0
        self.failure: Exception | None = None
        conf = HadoopConf(folder, {})
        self.submitter = SkeinSubmitter(conf, self.cluster, {}, folder, connect=self._connect)

    def _connect(self, conf: HadoopConf, environ: object, cache_dir: object) -> Connection:
        self.connects += 1
        if self.failure is not None:
            raise self.failure
        folder = self.folder / "client"
        folder.mkdir()
        jvm: Any = self.jvm
        return Connection(jvm, self.client, None, ClassPath((), ()), folder)


@pytest.fixture
def it(tmp_path: Path) -> Iterator[Fixture]:
    fixture = Fixture(tmp_path)
    yield fixture
    fixture.submitter.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "skein-client"]


def test_a_submit_starts_one_jvm_and_says_the_id(it: Fixture) -> None:
    it.submitter.start()
    it.submitter.start()
    assert it.submitter.submit(SPEC) == "application_1_0001"
    assert it.connects == 1
    (sent,) = it.client.submitted
    assert sent.name == "a"


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (replace(SPEC, queue="nope"), QueueUnavailable),
        (replace(SPEC, task_manager=ContainerSpec(9, 1, "x")), RequestTooLarge),
    ],
)
def test_what_cannot_be_is_not_submitted(it: Fixture, spec: ApplicationSpec, error: type[Exception]) -> None:
    with pytest.raises(error):
        it.submitter.submit(spec)
    assert it.client.submitted == []


def test_skein_is_not_sent_again_when_it_comes_from_a_cache(it: Fixture) -> None:
    jar = it.folder / "client" / "application.jar"
    it.submitter.submit(SPEC)
    assert jar.stat().st_size >= skein_jar().stat().st_size
    cached = {SKEIN_JAR_NAME: LocalResource("hdfs://nn/skein.jar")}
    it.submitter.submit(replace(SPEC, master=replace(SPEC.master, resources=cached)))
    assert jar.stat().st_size < 1000


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("Failed, exception:\nroot is submitting to unknown queue: x", QueueUnavailable),
        ("Invalid resource request! ... InvalidResourceRequestException", RequestTooLarge),
        ("Cannot create directory /user. Name node is in safe mode.", StorageUnavailable),
        ("Permission denied: user=ada, access=WRITE", StorageDenied),
        ("Call From a to b failed on connection exception: java.net", YarnUnavailable),
        ("Something new\n\tat java", YarnError),
    ],
)
def test_errors_of_yarn_and_hdfs_are_what_they_mean(it: Fixture, said: str, error: type[Exception]) -> None:
    it.client.error = skein().exceptions.DriverError(said)
    with pytest.raises(error) as raised:
        it.submitter.submit(SPEC)
    assert type(raised.value) is error
    assert str(raised.value).startswith("could not submit to YARN: ")
    assert "\n" not in str(raised.value)


def test_a_jvm_that_is_gone_is_said_with_its_last_output(it: Fixture) -> None:
    it.client.error = skein().exceptions.ConnectionError("Unable to connect to driver")
    with pytest.raises(YarnUnavailable, match="ended.*ERROR no more memory"):
        it.submitter.submit(SPEC)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("x")])
def test_a_submit_that_fails_leaves_no_application(it: Fixture, error: BaseException) -> None:
    for application in (
        _application("application_1_0001", ApplicationState.ACCEPTED, ("yarnflow", "yarnflow-0123")),
        _application("application_1_0002", ApplicationState.RUNNING, ("yarnflow-0123",)),
        _application("application_1_0003", ApplicationState.FINISHED, ("yarnflow", "yarnflow-0123")),
    ):
        it.cluster.add(application)
    it.client.error = error
    undone: list[str] = []
    with pytest.raises(type(error)):
        it.submitter.submit(SPEC, undone.append)
    assert it.cluster.killed == undone == ["application_1_0001"]
    # before YARN was looked at, or the JVM could have been quicker
    assert it.jvm.ends == ["kill", "close"]
    assert not (it.folder / "client").exists()


def test_a_submit_that_is_given_up(it: Fixture) -> None:
    it.cluster.add(_application("application_1_0001", ApplicationState.ACCEPTED, SPEC.tags))

    def give_up() -> None:
        it.submitter.abort()
        assert it.jvm.ends == ["kill"]
        it.client.error = skein().exceptions.ConnectionError("Unable to connect to driver")

    it.client.on_submit = give_up
    with pytest.raises(YarnUnavailable):
        it.submitter.submit(SPEC)
    assert it.cluster.killed == ["application_1_0001"]


def test_a_submit_that_is_given_up_while_the_jvm_starts(it: Fixture) -> None:
    it.submitter.abort()
    with pytest.raises(YarnError, match="given up"):
        it.submitter.submit(SPEC)
    assert it.client.submitted == [] and it.jvm.ends == ["close"]


def test_the_next_submit_after_a_failed_one_starts_another_jvm(it: Fixture) -> None:
    it.client.error = RuntimeError("x")
    with pytest.raises(RuntimeError):
        it.submitter.submit(SPEC)
    it.client.error = None
    assert it.submitter.submit(SPEC) == "application_1_0001"
    assert it.connects == 2


def test_a_jvm_that_cannot_start_is_an_error_where_it_is_needed(it: Fixture) -> None:
    it.failure = YarnUnavailable("no yarn")
    it.submitter.start()
    for _ in range(2):
        with pytest.raises(YarnUnavailable, match="no yarn"):
            it.submitter.submit(SPEC)
    it.failure = None
    it.submitter.submit(SPEC)


def test_kill_needs_no_jvm(it: Fixture) -> None:
    it.cluster.add(_application("application_1_0009", ApplicationState.RUNNING, ()))
    it.submitter.kill("application_1_0009")
    assert it.cluster.killed == ["application_1_0009"]
    assert it.connects == 0


def test_the_configuration_gives_up_soon_and_includes_the_clients(tmp_path: Path) -> None:
    (tmp_path / "with blank").mkdir()
    folder = impatient_configuration(tmp_path, tmp_path / "with blank")
    text = (folder / "yarn-site.xml").read_text()
    assert "with%20blank/yarn-site.xml" in text
    # the last one counts
    assert text.index("xi:include") < text.index("yarn.resourcemanager.connect.max-wait.ms")
