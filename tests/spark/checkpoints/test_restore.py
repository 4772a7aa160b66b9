"""State that is brought to a job, by drivers of which one alone is the job's; without Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.spark.checkpoints.local_files import LocalFiles
from yarnflow.core.checkpoint.manifest import METADATA_FILE, SavepointFile, SavepointMetadata, to_bytes
from yarnflow.core.checkpoint.messages import (
    CheckpointKind,
    ClaimMode,
    QueryPosition,
    RestoredState,
    RestoreSettings,
)
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import to_json
from yarnflow.errors import LeaseLost, StateIncompatible, StorageError
from yarnflow.operators.task.state_layout import LAYOUT_FILE, LastSource, StateLayout
from yarnflow.spark.checkpoints import restore as restoring
from yarnflow.spark.checkpoints.file_copy import CopiedFile
from yarnflow.spark.checkpoints.placing import work_directory

SHAPE = ProgramShape("GRAPH", "of-operators-and-edges")
LAYOUT = StateLayout((("a",),), ((),), LastSource.OF_PROGRAM)
#: of a query that was planned and committed once
QUERY_FILES = {
    "query-elements/offsets/0": 'v1\n{"conf":{}}\n-',
    "query-elements/commits/0": "v1\n{}",
    "query-elements/metadata": '{"id":"a"}',
}
#: Spark is not asked
NO_SPARK: Any = None


class Lease:
    """Held for some looks at it, then lost.

    Attributes
    ----------
    looks : int
        That are left.
    lost : callable
        Called when it is lost.
    """

    def __init__(self, looks: int, lost: Callable[[], None] = lambda: None) -> None:
        self.looks = looks
        self.lost = lost

    def check(self) -> None:
        if self.looks == 0:
            self.lost()
            raise LeaseLost("another driver has it")
        self.looks -= 1


@dataclass
class Savepoint:
    """Of one query without state."""

    directory: Path

    def write(self, files: Mapping[str, str]) -> None:
        for path, content in files.items():
            (self.directory / path).parent.mkdir(parents=True, exist_ok=True)
            (self.directory / path).write_text(content)
        manifest = SavepointMetadata(
            1, CheckpointKind.SAVEPOINT, JobId("0" * 32), "", "", 0, "", SHAPE,
            (QueryPosition("elements", 0, "/before/query-elements"),),
            tuple(SavepointFile(path, len(content)) for path, content in files.items()),
        )  # fmt: skip
        (self.directory / METADATA_FILE).write_bytes(to_bytes(manifest))


def copied(
    files: object, paths: Mapping[str, str], check: Callable[[], None]
) -> dict[str, CopiedFile]:
    check()
    found = {}
    for source, target in paths.items():
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        found[source] = CopiedFile(Path(target).stat().st_size, "")
    return found


@pytest.fixture
def savepoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(restoring, "HadoopFiles", lambda spark: LocalFiles())
    monkeypatch.setattr(restoring, "copy_files", copied)
    directory = tmp_path / "savepoint"
    Savepoint(directory).write(QUERY_FILES)
    return directory


def restore(
    savepoint: Path, job: Path, fence: Callable[[], None], claim: bool = False
) -> RestoredState | None:
    settings = RestoreSettings(str(savepoint), ClaimMode.CLAIM if claim else ClaimMode.NO_CLAIM)
    return restoring.restore(NO_SPARK, settings, str(job), None, trusted=True, fence=fence)


def test_a_driver_that_lost_the_job_puts_nothing_in_its_place(savepoint: Path, tmp_path: Path) -> None:
    job = tmp_path / "job"
    looks = 0
    # before files are copied, they come into their place, the job is said to be restored, the savepoint is
    # removed
    for there in (False, False, True, True):
        with pytest.raises(LeaseLost):
            restore(savepoint, job, Lease(looks).check, claim=True)
        assert (job / "query-elements").exists() is there and savepoint.exists()
        assert (job / "restored.json").exists() is (looks == 3)
        shutil.rmtree(job)
        looks += 1
    assert restore(savepoint, job, Lease(looks).check, claim=True) is not None
    assert not savepoint.exists() and (job / "query-elements/commits/0").exists()


def test_two_drivers_have_work_of_their_own(savepoint: Path, tmp_path: Path) -> None:
    job, left = tmp_path / "job", "query-elements.restoring-of-another"
    (job / left).mkdir(parents=True)
    (job / "query-elements2.restoring-x").mkdir()

    def next_driver() -> None:
        restore(savepoint, job, lambda: None)

    assert work_directory(str(job)) != work_directory(str(job))
    with pytest.raises(LeaseLost):
        # it removes what was left, and is then slower than the next driver
        restore(savepoint, job, Lease(2, next_driver).check)
    assert {p.name for p in job.iterdir()} == {
        "query-elements", "query-elements2.restoring-x", "restored.json"
    }  # fmt: skip
    assert {p.name for p in (job / "query-elements").iterdir()} == {
        "offsets", "commits", "metadata", "sink-identity"
    }  # fmt: skip


def test_what_is_in_the_place_meanwhile_is_not_touched(savepoint: Path, tmp_path: Path) -> None:
    place = tmp_path / "job/query-elements"

    def another_comes() -> None:
        place.mkdir(exist_ok=True)

    with pytest.raises(StorageError, match="query-elements is there already: another driver"):
        # that the lease is lost is noticed after a while only
        restore(savepoint, tmp_path / "job", another_comes)
    assert list(place.iterdir()) == []


def test_state_without_a_layout_is_for_the_same_program_alone(savepoint: Path, tmp_path: Path) -> None:
    changed = replace(SHAPE, graph_hash="of-others")
    of_state = {"query-elements/state/0/0/1.delta": "state"}
    layout = {f"query-elements/{LAYOUT_FILE}": to_json(LAYOUT)}

    def start(number: int, shape: ProgramShape, files: Mapping[str, str]) -> None:
        Savepoint(savepoint).write({**QUERY_FILES, **files})
        settings, job = RestoreSettings(str(savepoint)), str(tmp_path / f"job{number}")
        layouts = {"elements": LAYOUT}
        restoring.restore(NO_SPARK, settings, job, shape, trusted=True, layouts=layouts)

    start(1, SHAPE, of_state)
    # without state there is nothing that could lie elsewhere
    start(2, changed, {})
    with pytest.raises(StateIncompatible, match="no state-layout .* by an earlier development version"):
        start(3, changed, of_state)
    assert not (tmp_path / "job3").exists()
    start(3, changed, {**of_state, **layout})
