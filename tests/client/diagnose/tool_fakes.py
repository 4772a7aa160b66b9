"""A YARN and an HDFS that exist only in the test, behind the services the tools use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from yarnflow.client.diagnose.aggregated_logs import CollectedLine
from yarnflow.config.configuration import Configuration
from yarnflow.config.hadoop_conf import HadoopConf
from yarnflow.core.yarn import (
    Application,
    ApplicationState,
    ClusterLimits,
    FinalStatus,
    Queue,
    YarnContainer,
)
from yarnflow.errors import ApplicationNotFound, YarnUnavailable
from yarnflow.staging.layout import APPLICATION_TAG, StagingLayout, deployment_tag, job_tag
from yarnflow.testing.file_system import MemoryFileSystem

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


class FakeCluster:
    """Answers with what it was given; ``script`` lists what happens at each look at an application."""

    def __init__(self, *applications: Application) -> None:
        self.known = {item.application_id: item for item in applications}
        self.script: list[Application] = []
        self.containers_of: list[YarnContainer] = [
            YarnContainer(WORKER, "node2:8042", "RUNNING"),
            YarnContainer(MASTER, "node1:8042", "RUNNING"),
        ]
        self.down = False
        self.killed: list[str] = []
        self.all_queues = [Queue("default", "root.default", max_capacity_percent=100, used_percent=5)]
        self.cluster_limits = ClusterLimits(8192, 8, 16384, 16000, 16, 15, 2)

    def _answer(self) -> None:
        if self.down:
            raise YarnUnavailable("the ResourceManager does not answer (rm:8088: connection refused)")

    def application(self, application_id: str) -> Application:
        self._answer()
        if self.script:
            self.known[application_id] = self.script.pop(0)
        if application_id not in self.known:
            raise ApplicationNotFound(f"YARN does not know {application_id}")
        return self.known[application_id]

    def applications(
        self, *, tag: str = "", user: str = "", states: Sequence[ApplicationState] = ()
    ) -> Sequence[Application]:
        self._answer()
        return [
            item
            for item in self.known.values()
            if (not tag or tag in item.tags)
            and (not user or user == item.user)
            and (not states or item.state in states)
        ]

    def queues(self) -> Sequence[Queue]:
        self._answer()
        return self.all_queues

    def limits(self) -> ClusterLimits:
        self._answer()
        return self.cluster_limits

    def containers(self, application_id: str) -> Sequence[YarnContainer]:
        self._answer()
        return self.containers_of

    def kill(self, application_id: str) -> None:
        self.killed.append(application_id)
        self.known[application_id] = ended(self.known[application_id], FinalStatus.KILLED)


@dataclass
class FakeServices:
    """Looks like :class:`yarnflow.client.yarn.services.YarnServices`."""

    cluster: FakeCluster
    fs: MemoryFileSystem = field(default_factory=MemoryFileSystem)
    configuration: Configuration = field(default_factory=Configuration.empty)
    properties: Mapping[str, str] = field(default_factory=lambda: {"yarn.log-aggregation-enable": "true"})
    user: str = "ann"
    environ: Mapping[str, str] = field(default_factory=dict)
    layout: StagingLayout = field(default_factory=lambda: StagingLayout("/user/ann/.yarnflow"))
    closed: bool = False
    fake_submitter: Any = None

    @property
    def conf(self) -> HadoopConf:
        return HadoopConf(Path("/etc/hadoop"), self.properties)

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

    def files(self, node: str, container_id: str) -> Sequence[File]:
        if node in self.unreachable:
            raise YarnUnavailable(f"NodeManager {node} does not answer")
        return self.by_container.get(container_id, [])

    def read(self, node: str, container_id: str, name: str, offset_bytes: int = 0) -> bytes:
        self.reads.append((name, offset_bytes))
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
