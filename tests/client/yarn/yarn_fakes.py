"""YARN, HDFS and skein that exist only in the test."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from yarnflow.client.yarn.services import YarnServices
from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import (
    Application,
    ApplicationSpec,
    ApplicationState,
    DeploymentMode,
    FinalStatus,
)
from yarnflow.errors import RpcUnavailable, YarnflowError
from yarnflow.staging.deployment import ApplicationDirectory, ApplicationResult, Connection
from yarnflow.staging.layout import APPLICATION_TAG, deployment_tag, prepare
from yarnflow.testing.file_system import MemoryFileSystem
from yarnflow.testing.gateways.dispatcher import FakeDispatcher
from yarnflow.testing.gateways.factory import FakeGateways
from yarnflow.testing.yarn_cluster import FakeYarnCluster
from yarnflow.testing.yarn_submitter import FakeYarnSubmitter

S = ApplicationState
LIVE = (JobStatus.CREATED, JobStatus.RUNNING)


class FakeConf:
    """Hadoop's configuration of one file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.yarn_cluster = "http://rm:8088"
        (directory / "core-site.xml").write_text("<configuration/>")

    def files(self) -> list[Path]:
        return [self.directory / "core-site.xml"]


@dataclass
class World:
    """Everything together."""

    directory: Path
    yarn: FakeYarnCluster = field(default_factory=FakeYarnCluster)
    fs: MemoryFileSystem = field(default_factory=MemoryFileSystem)
    gateways: FakeGateways = field(default_factory=FakeGateways)
    submitter: FakeYarnSubmitter = field(init=False)
    #: what the master of a new application does: (application id, deployment id)
    master: Callable[[str, str], object] = field(init=False)

    @property
    def dispatchers(self) -> dict[str, FakeDispatcher]:
        """By address."""
        return self.gateways.dispatchers

    def __post_init__(self) -> None:
        self.master = self.serve
        self.submitter = FakeYarnSubmitter(self.yarn)
        self.submitter.on_accepted = self._start_master

    def add(
        self,
        application_id: str,
        deployment_id: str,
        state: ApplicationState = S.RUNNING,
        mode: DeploymentMode = DeploymentMode.SESSION,
        **more: Any,
    ) -> Application:
        """An application that somebody has submitted to YARN."""
        tags = (APPLICATION_TAG, f"{APPLICATION_TAG}-{mode.target}", deployment_tag(deployment_id))
        more = {"tags": tags, "started_ms": len(self.yarn.known), **more}
        final = more.pop("final_status", FinalStatus.UNDEFINED)
        name, user = more.pop("name", "flights"), more.pop("user", "ann")
        return self.yarn.add(Application(application_id, name, user, "default", state, final, **more))

    def yarn_services(
        self, configuration: Configuration, environ: Mapping[str, str], *, submits: bool = False
    ) -> YarnServices:
        """In place of the real function."""
        if submits:
            self.submitter.start()
        return self.services_of(configuration)

    def services(self, **options: str) -> YarnServices:
        configuration = Configuration.from_dict(
            {key.replace("__", "-").replace("_", "."): value for key, value in options.items()}, "-D"
        )
        return self.services_of(configuration)

    def services_of(self, configuration: Configuration) -> YarnServices:
        services = YarnServices(
            configuration,
            cast(Any, FakeConf(self.directory)),
            "ann",
            self.fs,
            self.yarn,
            {},
            self.submitter,
            lambda configuration, secret: self.gateways,
        )
        prepare(self.fs, services.layout, "ann")
        return services

    def serve(self, application_id: str, deployment_id: str, address: str = "") -> FakeDispatcher:
        """The master of an application publishes its JobManager, which knows the submitted job."""
        address = address or f"{application_id}:1"
        dispatcher = self.dispatchers.setdefault(address, FakeDispatcher(LIVE))
        folder = self.folder(deployment_id)
        if self.fs.status(folder.path) is None:
            folder.create()
            folder.write_secret("ab" * 32)
        try:
            submission = folder.read_submission()
            if submission not in dispatcher.submissions:
                dispatcher.submissions.append(submission)
        except YarnflowError:
            pass
        folder.publish_connection(Connection(application_id, address, "http://w:1", "l", 1, 1))
        return dispatcher

    def _start_master(self, application_id: str, spec: ApplicationSpec) -> None:
        (deployment_id,) = [tag[9:] for tag in spec.tags if re.fullmatch("yarnflow-[0-9a-f]{16}", tag)]
        self.master(application_id, deployment_id)

    def leave(self, address: str) -> None:
        """The JobManager there ends; connections to it break."""
        self.dispatchers.pop(address).down = RpcUnavailable("nobody listens")

    def folder(self, deployment_id: str) -> ApplicationDirectory:
        from yarnflow.staging.layout import StagingLayout

        return ApplicationDirectory(self.fs, StagingLayout(f"{self.fs.home()}/.yarnflow"), deployment_id)

    def end(
        self,
        application_id: str,
        deployment_id: str,
        final: FinalStatus,
        details: JobDetails | None = None,
        diagnostics: str = "",
        *,
        error_code: str = "",
        written: bool = True,
    ) -> None:
        """The master ends."""
        for address in [address for address in self.dispatchers if address.startswith(application_id)]:
            self.leave(address)
        if written:
            status = details.overview.status.value if details else final.value
            self.folder(deployment_id).write_result(
                ApplicationResult(status, diagnostics, details, error_code)
            )
        now_ms = time.time_ns() // 1_000_000
        self.yarn.change(
            application_id, state=S.FINISHED, final_status=final, diagnostics=diagnostics, finished_ms=now_ms
        )


def job_id(number: int) -> JobId:
    return JobId(f"{number:032x}")
