"""Commands that submit to a YARN of fakes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.client.yarn.yarn_fakes import World, job_id
from yarnflow.client.yarn import deployer, session_client, shipping
from yarnflow.client.yarn import submission as yarn_submit
from yarnflow.client.yarn.deployer import YarnDeployer
from yarnflow.config.configuration import Configuration
from yarnflow.core.messages import JobSubmission, JobSubmitted, ProgramKind
from yarnflow.core.yarn import DeploymentMode
from yarnflow.process.clock import SystemClock
from yarnflow.staging.cache import ContentCache
from yarnflow.staging.job_keys import JobKeys
from yarnflow.staging.layout import StagingLayout
from yarnflow.testing.gateways.dispatcher import FakeDispatcher

M = DeploymentMode


def submit_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A YARN to submit to, whose masters answer at once."""
    archive = tmp_path / "dist.zip"
    archive.write_bytes(b"the package")
    (tmp_path / "conf").mkdir()
    made = World(tmp_path / "conf")
    monkeypatch.setattr(shipping, "distribution", lambda: archive)
    for module in (deployer, session_client):
        monkeypatch.setattr(module, "yarn_services", made.yarn_services)
        monkeypatch.setattr(
            module, "ContentCache", lambda fs, layout: ContentCache(fs, layout, tmp_path / "hashes.json")
        )
    monkeypatch.setattr(yarn_submit, "_LOG_PAUSE_S", 0.0)
    return made


def submission(key: str = "", number: int = 7) -> JobSubmission:
    return JobSubmission(job_id(number), "flights", ProgramKind.GRAPH, "{}", {}, job_key=key)


def options(**values: str) -> Configuration:
    return Configuration.from_dict({key.replace("_", "."): value for key, value in values.items()}, "-D")


def unheard(note: str) -> None:
    """Nobody reads what a submit says."""


class Client:
    """A command that submits."""

    def __init__(self, world: World, mode: DeploymentMode = M.PER_JOB, **values: str) -> None:
        self.notes: list[str] = []
        self.world = world
        self.deployer = YarnDeployer.begin(options(**values), mode, self.notes.append)

    def submit(self, what: JobSubmission | None = None, slots: int = 3) -> JobSubmitted:
        return self.deployer.submit(what or submission(), slots)

    def stop(self, forced: bool = False) -> None:
        self.deployer.stop(forced=forced, failed=False)


def applications(world: World) -> list[str]:
    return [status.path for status in world.fs.list(f"{world.fs.home()}/.yarnflow/applications")]


def keys(world: World) -> JobKeys:
    return JobKeys(world.fs, StagingLayout(f"{world.fs.home()}/.yarnflow"), SystemClock())


def running(world: World, program: str = "") -> FakeDispatcher:
    """A live job of key k; ``program`` is the digest of what it runs."""
    client = Client(world)
    client.submit(replace(submission("k", 1), program_digest=program))
    client.stop()
    return world.dispatchers["application_1_0001:1"]
