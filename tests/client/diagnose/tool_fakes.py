"""A YARN and an HDFS that exist only in the test, behind the services the tools use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from yarnflow.client.yarn.aggregated_logs import CollectedLine
from yarnflow.config.configuration import Configuration
from yarnflow.config.hadoop.conf import HadoopConf
from yarnflow.core.yarn import (
    Application,
    ApplicationState,
    ClusterLimits,
    FinalStatus,
    Queue,
    YarnContainer,
)
from yarnflow.errors import ApplicationNotFound, FileMissing, YarnUnavailable
from yarnflow.staging.layout import APPLICATION_TAG, StagingLayout, deployment_tag, job_tag
from yarnflow.testing.file_system import MemoryFileSystem
from yarnflow.testing.gateways.factory import FakeGateways
from yarnflow.testing.yarn_cluster import FakeYarnCluster
from yarnflow.testing.yarn_submitter import FakeYarnSubmitter

DEPLOYMENT = "0123456789abcdef"
JOB = "ab" * 16
APPLICATION = "application_1700000000000_0007"
MASTER = "container_1700000000000_0007_01_000001"
WORKER = "container_1700000000000_0007_01_000002"


def application(
    application_id: str = APPLICATION,
    state: ApplicationState = ApplicationState.RUNNING,
    final: FinalStatus = FinalStatus.UNDEFINED,
    *,
    deployment_id: str = DEPLOYMENT,
    mode: str = "yarn-per-job",
    started_ms: int = 1_000,
    finished_ms: int = -1,
    diagnostics: str = "",
) -> Application:
    return Application(
        application_id,
        "flights",
        "ann",
        "root.default",
        state,
        final,
        tags=(APPLICATION_TAG, f"{APPLICATION_TAG}-{mode}", deployment_tag(deployment_id), job_tag(JOB)),
        diagnostics=diagnostics,
        started_ms=started_ms,
        finished_ms=finished_ms,
        running_containers=2,
    )


def ended(application_: Application, final: FinalStatus = FinalStatus.SUCCEEDED) -> Application:
    return replace(
        application_, state=ApplicationState.FINISHED, final_status=final, finished_ms=10_000
    )


def yarn_with(*applications: Application) -> FakeYarnCluster:
    """A YARN with a master and a worker in each application, and one queue."""
    cluster = FakeYarnCluster(*applications)
    cluster.containers_of = [
        YarnContainer(WORKER, "node2:8042", "RUNNING"),
        YarnContainer(MASTER, "node1:8042", "RUNNING"),
    ]
    cluster.all_queues = [Queue("default", "root.default", max_capacity_percent=100, used_percent=5)]
    cluster.cluster_limits = ClusterLimits(8192, 8, 16384, 16000, 16, 15, 2)
    return cluster


def no_answer() -> YarnUnavailable:
    """What asking a ResourceManager that is down leads to."""
    return YarnUnavailable("the ResourceManager does not answer (rm:8088: connection refused)")


@dataclass
class FakeServices:
    """Looks like :class:`yarnflow.client.yarn.services.YarnServices`."""

    cluster: FakeYarnCluster
    fs: MemoryFileSystem = field(default_factory=MemoryFileSystem)
    configuration: Configuration = field(default_factory=Configuration.empty)
    properties: Mapping[str, str] = field(default_factory=lambda: {"yarn.log-aggregation-enable": "true"})
    user: str = "ann"
    environ: Mapping[str, str] = field(default_factory=dict)
    layout: StagingLayout = field(default_factory=lambda: StagingLayout("/user/ann/.yarnflow"))
    closed: bool = False
    gateways: FakeGateways = field(default_factory=FakeGateways)
    fake_submitter: FakeYarnSubmitter | None = None

    @property
    def conf(self) -> HadoopConf:
        return HadoopConf(Path("/etc/hadoop"), self.properties)

    def new_gateways(self, configuration: Configuration, secret: str) -> FakeGateways:
        return self.gateways

    def submitter(self) -> Any:
        return self.fake_submitter

    def close(self) -> None:
        self.closed = True


@dataclass
class File:
    """A live log file that grows when the test says so."""

    name: str
    content: bytes

    @property
    def length_bytes(self) -> int:
        return len(self.content)


class FakeLiveLogs:
    """Logs of running containers."""

    def __init__(self, files: Mapping[str, list[File]]) -> None:
        self.by_container = {name: list(items) for name, items in files.items()}
        self.reads: list[tuple[str, int]] = []
        self.unreachable: set[str] = set()
        #: names of files that go after they were listed
        self.removed: set[str] = set()

    def files(self, node: str, container_id: str) -> Sequence[File]:
        if node in self.unreachable:
            raise YarnUnavailable(f"NodeManager {node} does not answer")
        return self.by_container.get(container_id, [])

    def read(self, node: str, container_id: str, name: str, offset_bytes: int = 0) -> bytes:
        self.reads.append((name, offset_bytes))
        if name in self.removed:
            raise FileMissing(f"container {container_id} has no log file {name} (any more)")
        (file,) = [file for file in self.by_container[container_id] if file.name == name]
        return file.content[offset_bytes:]


class FakeCollected:
    """Logs on HDFS: (container, file) → text."""

    def __init__(self, texts: Mapping[tuple[str, str], str]) -> None:
        self.texts = texts
        self.asked: list[tuple[str, str]] = []
        #: after the last line
        self.failure: YarnUnavailable | None = None

    def __call__(self, application_id: str, user: str, environ: Mapping[str, str]) -> Iterator[CollectedLine]:
        self.asked.append((application_id, user))
        if not self.texts:
            raise ApplicationNotFound("no logs")
        for (container_id, file), text in self.texts.items():
            for line in text.splitlines(keepends=True):
                yield CollectedLine(container_id, file, line)
        if self.failure is not None:
            raise self.failure
