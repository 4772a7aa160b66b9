"""The files of an application's directory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobSubmission, ProgramKind
from yarnflow.core.yarn import ApplicationSpec, ContainerSpec, DeploymentMode, LocalResource, Visibility
from yarnflow.errors import FileMissing, StorageError
from yarnflow.staging.deployment import ApplicationDirectory, ApplicationResult, Connection, Deployment
from yarnflow.staging.layout import StagingLayout, prepare
from yarnflow.testing.file_system import MemoryFileSystem

LAYOUT = StagingLayout("/user/ann/.yarnflow")
DEPLOYMENT = Deployment(
    "0123456789abcdef",
    DeploymentMode.APPLICATION,
    "hdfs://memory:8020/user/ann/.yarnflow",
    "/user/ann/.yarnflow/applications/0123456789abcdef",
    "ann",
    {"parallelism.default": "2"},
    program_argv=("main.py", "--x"),
)
CONNECTION = Connection("application_1_0001", "host:1", "http://host:2", "leader", 3, 4)


@pytest.fixture
def fs() -> MemoryFileSystem:
    fs = MemoryFileSystem()
    prepare(fs, LAYOUT, "ann")
    return fs


@pytest.fixture
def directory(fs: MemoryFileSystem) -> ApplicationDirectory:
    directory = ApplicationDirectory(fs, LAYOUT, DEPLOYMENT.deployment_id)
    directory.create()
    return directory


def test_everything_comes_back(directory: ApplicationDirectory, fs: MemoryFileSystem) -> None:
    submission = JobSubmission(
        JobId("0" * 32), "flights", ProgramKind.SCRIPT, "{}", {}, files={"main.py": b"\x00\xff"}
    )
    result = ApplicationResult("FAILED", "ValueError: 5")
    directory.write_deployment(DEPLOYMENT)
    directory.write_secret("ab" * 32 + "\n")
    directory.write_submission(submission)
    directory.publish_connection(CONNECTION)
    directory.write_result(result)
    assert directory.read_deployment() == DEPLOYMENT
    assert directory.read_secret() == "ab" * 32
    assert directory.read_submission() == submission
    assert directory.read_connection() == CONNECTION
    assert directory.read_result() == result
    # nobody else may look
    status = fs.status(directory.path)
    assert status is not None and status.permission == 0o700
    assert {file.permission for file in fs.list(directory.path)} == {0o600}


def test_how_another_master_is_started(directory: ApplicationDirectory, fs: MemoryFileSystem) -> None:
    resource = LocalResource("hdfs://n/x", True, Visibility.PRIVATE, 3, 4)
    master = ContainerSpec(2240, 1, "exec x", {"x": resource}, {"YARNFLOW_STANDBY": "1"})
    spec = ApplicationSpec("n", "q", ("yarnflow",), master, ContainerSpec(1, 1, "y"), masters=2)
    directory.create()
    directory.write_application(spec)
    assert directory.read_application() == spec
    status = fs.status(directory.file("application.json"))
    assert status is not None and status.permission == 0o600


def test_nothing_there_yet(directory: ApplicationDirectory) -> None:
    assert directory.read_connection() is None
    assert directory.read_result() is None
    with pytest.raises(FileMissing, match="deployment.json"):
        directory.read_deployment()
    with pytest.raises(FileMissing, match="secret does not exist; submit again"):
        directory.resource("secret")


def test_a_deleted_directory_stays_deleted(directory: ApplicationDirectory, fs: MemoryFileSystem) -> None:
    assert directory.delete()
    assert not directory.delete()
    with pytest.raises(FileMissing):
        directory.publish_connection(CONNECTION)
    assert directory.read_connection() is None
    assert not fs.list(LAYOUT.applications)


def test_a_file_as_yarn_localises_it(directory: ApplicationDirectory) -> None:
    directory.write_secret("ab" * 32)
    resource = directory.resource("secret")
    assert resource.source == f"hdfs://memory:8020{directory.path}/secret"
    assert (resource.visibility, resource.archive, resource.size_bytes) == (Visibility.APPLICATION, False, 65)
    assert resource.modified_ms > 0


def test_a_file_that_is_something_else(directory: ApplicationDirectory, fs: MemoryFileSystem) -> None:
    fs.write(f"{directory.path}/connection.json", b'{"address": 5}')
    with pytest.raises(StorageError, match=f"{directory.path}/connection.json cannot be read: Connection"):
        directory.read_connection()


def test_what_a_deployment_leads_to() -> None:
    assert DEPLOYMENT.layout == LAYOUT
    assert DEPLOYMENT.tag == "yarnflow-0123456789abcdef"


@pytest.mark.parametrize(
    ("mode", "drivers", "one_job"),
    [
        (DeploymentMode.PER_JOB, 1, True),
        (DeploymentMode.PER_JOB, 3, True),
        (DeploymentMode.APPLICATION, 1, True),
        (DeploymentMode.APPLICATION, 2, False),
        (DeploymentMode.SESSION, 2, False),
    ],
)
def test_where_jobs_never_run_at_the_same_time(mode: DeploymentMode, drivers: int, one_job: bool) -> None:
    assert replace(DEPLOYMENT, mode=mode, drivers=drivers).one_job == one_job
