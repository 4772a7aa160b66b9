"""Which savepoints are deleted for whoever may ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import pytest

from tests.client import saved
from tests.client.fakes import checkpoint
from yarnflow.config.configuration import Configuration
from yarnflow.core.checkpoint.manifest import METADATA_FILE
from yarnflow.core.checkpoint.messages import CheckpointInfo, CheckpointKind, JobCheckpoints
from yarnflow.core.ids import JobId
from yarnflow.core.job.description import JobDescription
from yarnflow.entrypoint.master.web.disposal import SavepointDisposal
from yarnflow.errors import JobNotFound, SavepointNotFound, StorageDenied
from yarnflow.fs.file_systems import file_systems

SAVEPOINTS: Final = "execution.checkpointing.savepoint-dir"


@dataclass
class Jobs:
    """One job, and one that is forgotten between two questions."""

    directory: str = ""
    savepoint_dir: str = ""
    history: tuple[CheckpointInfo, ...] = ()
    forgotten: JobId = field(default=JobId("f" * 32))

    def job_ids(self) -> list[JobId]:
        return [self.forgotten, saved.JOB]

    def job_checkpoints(self, job_id: JobId) -> JobCheckpoints:
        if job_id == self.forgotten:
            raise JobNotFound("it is gone")
        return JobCheckpoints(job_id, directory=self.directory, history=self.history)

    def job_description(self, job_id: JobId) -> JobDescription | None:
        if job_id == self.forgotten:
            raise JobNotFound("it is gone")
        return JobDescription(job_id, "flights", savepoint_dir=self.savepoint_dir)


def dispose(
    path: str, place: Path, jobs: Jobs | None = None, options: Mapping[str, str] | None = None
) -> None:
    configuration = Configuration.from_dict(options or {}, "test")
    SavepointDisposal(configuration, place / "cluster", jobs or Jobs(), file_systems()).dispose(path)


@pytest.fixture
def savepoint(tmp_path: Path) -> Path:
    (tmp_path / "savepoints").mkdir()
    return saved.savepoint(tmp_path / "savepoints")


@pytest.mark.parametrize("written", ["{}", "file://{}", "{}/", "file:{}//"])
@pytest.mark.parametrize(
    "option",
    [
        SAVEPOINTS,
        "execution.checkpointing.dir",
        # Flink's older name
        "state.savepoints.dir",
    ],
)
def test_below_a_directory_of_the_clusters(
    option: str, written: str, savepoint: Path, tmp_path: Path
) -> None:
    dispose(f"file://{savepoint}", tmp_path, options={option: written.format(savepoint.parent)})
    assert not savepoint.exists()


def test_below_what_the_cluster_has_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "cluster" / "checkpoints").mkdir(parents=True)
    savepoint = saved.savepoint(tmp_path / "cluster" / "checkpoints")
    dispose(str(savepoint), tmp_path)
    assert not savepoint.exists()


def test_below_its_share_of_the_storage_of_all_clusters(tmp_path: Path) -> None:
    options = {"high-availability.storageDir": str(tmp_path), "high-availability.cluster-id": "mine"}
    for cluster in ("mine", "other"):
        (tmp_path / cluster).mkdir()
        saved.savepoint(tmp_path / cluster)
    name = next((tmp_path / "mine").iterdir()).name
    dispose(f"file://{tmp_path}/mine/{name}/{METADATA_FILE}", tmp_path, options=options)
    with pytest.raises(StorageDenied):
        dispose(f"file://{tmp_path}/other/{name}", tmp_path, options=options)
    assert not (tmp_path / "mine" / name).exists() and (tmp_path / "other" / name).exists()


def test_below_a_directory_of_a_job(savepoint: Path, tmp_path: Path) -> None:
    dispose(f"file://{savepoint}", tmp_path, Jobs(savepoint_dir=str(savepoint.parent)))
    again = saved.savepoint(savepoint.parent)
    dispose(f"file://{again}", tmp_path, Jobs(directory=f"file://{savepoint.parent}"))
    assert not again.exists()


def test_what_a_job_wrote_where_it_was_told_to(savepoint: Path, tmp_path: Path) -> None:
    other = saved.savepoint(savepoint.parent, "savepoint-ababab-ba9876543210")
    made = replace(checkpoint(3, kind=CheckpointKind.SAVEPOINT), external_path=f"file://{savepoint}")
    jobs = Jobs(history=(made,))
    with pytest.raises(StorageDenied):
        dispose(f"file://{other}", tmp_path, jobs)
    dispose(f"file://{savepoint}/{METADATA_FILE}", tmp_path, jobs)
    assert not savepoint.exists() and other.exists()


def test_nothing_else(savepoint: Path, tmp_path: Path) -> None:
    beside = f"{savepoint.parent}-of-others"
    refused = f"file://{savepoint} is neither below.*savepoint-dir.*yarnflow savepoint dispose"
    for options in ({}, {SAVEPOINTS: beside}, {SAVEPOINTS: f"{savepoint}"}):
        with pytest.raises(StorageDenied, match=refused):
            dispose(f"file://{savepoint}", tmp_path, options=options)
    climbing = f"file://{tmp_path}/cluster/../savepoints/{savepoint.name}"
    with pytest.raises(StorageDenied, match=refused):
        dispose(climbing, tmp_path)
    assert (savepoint / METADATA_FILE).exists()


def test_a_directory_itself_is_not_below_it(savepoint: Path, tmp_path: Path) -> None:
    with pytest.raises(StorageDenied):
        dispose(f"file://{savepoint}/{METADATA_FILE}", tmp_path, options={SAVEPOINTS: str(savepoint)})


def test_directories_of_other_file_systems_are_passed_over(savepoint: Path, tmp_path: Path) -> None:
    jobs = Jobs(savepoint_dir=str(savepoint.parent))
    dispose(f"file://{savepoint}", tmp_path, jobs, {SAVEPOINTS: "s3://bucket/savepoints"})
    with pytest.raises(SavepointNotFound):
        dispose(f"file://{savepoint}", tmp_path, jobs)
