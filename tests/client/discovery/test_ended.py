"""How a job ended whose cluster has ended with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.client.yarn.yarn_fakes import World, job_id
from yarnflow.client.discovery.ended import ended_details
from yarnflow.client.yarn import services
from yarnflow.config.configuration import Configuration
from yarnflow.core.messages import JobDetails
from yarnflow.core.states import JobStatus
from yarnflow.core.yarn import DeploymentMode, FinalStatus
from yarnflow.errors import ApplicationFailed
from yarnflow.staging.layout import APPLICATION_TAG, deployment_tag, job_tag
from yarnflow.testing.gateways.dispatcher import details

ONE = "1" * 16
JOB = job_id(7)
HADOOP = {"HADOOP_CONF_DIR": "/etc/hadoop"}


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path)
    monkeypatch.setattr(services, "yarn_services", world.yarn_services)
    return world


def found(application_id: str = "", environ: dict[str, str] = HADOOP) -> JobDetails | None:
    values = {"yarn.application.id": application_id} if application_id else {}
    return ended_details(Configuration.from_dict(values, "-D"), JOB, environ)


def add(world: World, mode: DeploymentMode, *more_tags: str) -> None:
    """An application that runs."""
    tags = (APPLICATION_TAG, f"{APPLICATION_TAG}-{mode.target}", deployment_tag(ONE), *more_tags)
    world.add("application_1_1", ONE, mode=mode, tags=tags)
    world.serve("application_1_1", ONE)


def test_its_own_application_tells(world: World) -> None:
    add(world, DeploymentMode.PER_JOB, job_tag(JOB))
    assert found() is None
    world.end("application_1_1", ONE, FinalStatus.SUCCEEDED, details(JOB, 5, JobStatus.FINISHED))
    ending = found()
    assert ending is not None and ending.overview.status is JobStatus.FINISHED
    assert found(environ={}) is None


def test_an_application_that_was_killed_says_why(world: World) -> None:
    add(world, DeploymentMode.PER_JOB, job_tag(JOB))
    world.end("application_1_1", ONE, FinalStatus.FAILED, diagnostics="killed by ann", written=False)
    with pytest.raises(ApplicationFailed, match="killed by ann"):
        found()


def test_an_application_that_has_no_tag_of_the_job_is_named(world: World) -> None:
    add(world, DeploymentMode.APPLICATION)
    world.end("application_1_1", ONE, FinalStatus.SUCCEEDED, details(JOB, 5, JobStatus.FAILED))
    assert found() is None
    ending = found("application_1_1")
    assert ending is not None and ending.overview.status is JobStatus.FAILED
    assert found("application_1_2") is None


@pytest.mark.parametrize("final", [FinalStatus.SUCCEEDED, FinalStatus.KILLED, FinalStatus.FAILED])
def test_the_end_of_a_session_says_nothing_of_its_jobs(world: World, final: FinalStatus) -> None:
    add(world, DeploymentMode.SESSION)
    world.end("application_1_1", ONE, final, diagnostics="killed by ann", written=False)
    assert found("application_1_1") is None
