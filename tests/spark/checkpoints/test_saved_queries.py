"""State of a script's queries, put where each of them reads it; without Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.spark.checkpoints.local_files import LocalFiles
from yarnflow.core.checkpoint.manifest import SavepointMetadata
from yarnflow.core.checkpoint.messages import CheckpointKind, QueryPosition
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.ids import JobId
from yarnflow.errors import LeaseLost, SavepointInvalid, StateDamaged, StateIncompatible, StateInUse
from yarnflow.spark.checkpoints import saved_queries
from yarnflow.spark.checkpoints.file_copy import CopiedFile, SourceFileGone
from yarnflow.spark.checkpoints.job import Fence, no_fence
from yarnflow.spark.checkpoints.saved_queries import (
    SavedQuery,
    SavedState,
    find,
    kept_elsewhere,
    write_saved_queries,
)
from yarnflow.spark.script.places import QueryNames, place_of

FILES = {
    "metadata": '{"id":"a"}',
    "offsets/0": 'v1\n{"batchTimestampMs":1}\n-',
    "commits/0": "v1\n{}",
    "offsets/1": 'v1\n{"batchTimestampMs":2}\n-',
}


def name_at(place: str, location: str) -> str:
    return QueryNames().name(place, location)


class Restored:
    """A job that was started from a savepoint or checkpoint of queries at locations of their own."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.job = root / "job"
        monkeypatch.setattr(saved_queries, "copy_files", _copied)

    def saved(
        self,
        *locations: Path,
        kind: CheckpointKind = CheckpointKind.SAVEPOINT,
        allow: bool = False,
        names: tuple[str, ...] = (),
    ) -> None:
        """Their state is in the job's directory, as a restore leaves it."""
        names = names or tuple(name_at("start-1", str(location)) for location in locations)
        positions = tuple(
            QueryPosition(name, 0, str(location)) for name, location in zip(names, locations, strict=True)
        )
        if kind is CheckpointKind.SAVEPOINT:
            for name in names:
                write(self.job / name, FILES)
        manifest = SavepointMetadata(
            1, kind, JobId("0" * 32), "", "", 0, "", ProgramShape("SCRIPT"), positions
        )
        write_saved_queries(LocalFiles(), str(self.job), f"{self.root}/old/chk-1", manifest, allow)

    def start(self, location: Path, place: str = "start-1", fence: Fence = no_fence, name: str = "") -> None:
        """A query that the next driver of the job starts."""
        state = SavedState(LocalFiles, str(self.job), place_of, fence)
        state.bring(name or name_at(place, str(location)), str(location))


def write(directory: Path, files: Mapping[str, str]) -> None:
    for path, content in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(content)


def content(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): path.read_text()
        for path in directory.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def _copied(files: object, paths: Mapping[str, str], check: Callable[[], None]) -> dict[str, CopiedFile]:
    check()
    for source, target in paths.items():
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    return {}


@pytest.fixture
def restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Restored:
    return Restored(tmp_path, monkeypatch)


def test_state_comes_to_another_location_once(restored: Restored, tmp_path: Path) -> None:
    restored.saved(tmp_path / "a")
    here = tmp_path / "elsewhere/b"
    restored.start(here)
    assert content(here) == FILES
    assert [path.name for path in restored.job.iterdir()] == ["saved-queries.json"]
    # it has gone on, and the job gets another driver
    write(here, {"commits/1": "v1\n{}"})
    restored.start(here)
    assert set(content(here)) == {*FILES, "commits/1"}


def test_the_very_same_state_at_the_location_is_gone_on_from(restored: Restored, tmp_path: Path) -> None:
    here = tmp_path / "a"
    write(here, {**FILES, "metadata": '{"id":"of the query that was stopped"}'})
    restored.saved(here)
    restored.start(here)
    assert "stopped" in content(here)["metadata"]
    write(here, {"commits/1": "v1\n{}"})
    restored.start(here)


@pytest.mark.parametrize("kind", list(CheckpointKind))
def test_state_at_the_location_of_a_job_that_may_still_run_is_not_gone_on_from(
    restored: Restored, tmp_path: Path, kind: CheckpointKind
) -> None:
    """Also if it is the very same, as of a job that has read nothing since its savepoint."""
    here, other = tmp_path / "a", tmp_path / "other"
    write(other, {"owner.held": ""})
    SavedState(LocalFiles, str(other), place_of, no_fence).bring("copy", str(here))
    write(here, FILES)
    restored.saved(here, kind=kind)
    with pytest.raises(StateInUse, match="/other may still run"):
        restored.start(here)
    assert content(here) == FILES
    (other / "owner.held").unlink()
    restored.start(here)


def test_a_location_to_which_state_was_brought_is_the_jobs(restored: Restored, tmp_path: Path) -> None:
    write(restored.job, {"owner.held": ""})
    restored.saved(tmp_path / "a")
    restored.start(tmp_path / "b")
    with pytest.raises(StateInUse, match="/job may still run"):
        SavedState(LocalFiles, str(tmp_path / "other"), place_of, no_fence).bring("copy", str(tmp_path / "b"))


@pytest.mark.parametrize("path", ["commits/1", "offsets/2", "offsets/1"])
def test_other_state_at_the_location_is_never_replaced(
    restored: Restored, tmp_path: Path, path: str
) -> None:
    here = tmp_path / "a"
    write(here, {**FILES, path: 'v1\n{"batchTimestampMs":3}\n-'})
    before = content(here)
    restored.saved(here)
    with pytest.raises(StateIncompatible, match="has other state than .* left as it is"):
        restored.start(here)
    assert content(here) == before
    # nor is that of a job that has gone on from there before
    (here / ".restored-by").write_text("/another/job")
    with pytest.raises(StateIncompatible):
        restored.start(here)
    assert content(here) == before and len(list(restored.job.iterdir())) == 2


def test_a_checkpoint_leaves_state_where_it_is(restored: Restored, tmp_path: Path) -> None:
    here, there = tmp_path / "a", tmp_path / "b"
    write(here, FILES)
    restored.saved(here, kind=CheckpointKind.CHECKPOINT)
    restored.start(here)
    assert content(here) == FILES and not (here / ".restored-by").exists()
    restored.start(there)
    assert content(there) == FILES == content(here)


def test_where_a_query_went_on_is_known_to_jobs_that_start_from_this_one(
    restored: Restored, tmp_path: Path
) -> None:
    restored.saved(tmp_path / "a", tmp_path / "b", names=("one", "two"))
    job = str(restored.job)
    assert kept_elsewhere(LocalFiles(), job) == {}, "their state is below the job's directory"
    for _ in range(2):
        # the second time by another driver
        restored.start(tmp_path / "b", name="renamed")
        assert kept_elsewhere(LocalFiles(), job) == {"renamed": f"{tmp_path}/b"}
    restored.start(restored.job / "one", name="one")
    assert kept_elsewhere(LocalFiles(), job) == {"renamed": f"{tmp_path}/b"}


@pytest.mark.parametrize("allow", [False, True])
def test_what_no_query_has_gone_on_from_is_still_where_it_was(
    restored: Restored, tmp_path: Path, allow: bool
) -> None:
    write(tmp_path / "a", FILES)
    restored.saved(tmp_path / "a", kind=CheckpointKind.CHECKPOINT, names=("one",), allow=allow)
    expected = {} if allow else {"one": f"{tmp_path}/a"}
    assert kept_elsewhere(LocalFiles(), str(restored.job)) == expected
    restored.start(tmp_path / "c", name="one")
    assert kept_elsewhere(LocalFiles(), str(restored.job)) == {"one": f"{tmp_path}/c"}


def test_several_queries_of_one_call_are_told_by_their_locations(restored: Restored, tmp_path: Path) -> None:
    restored.saved(*(tmp_path / f"old/{table}/checkpoint" for table in "ab"))
    write(restored.job / name_at("start-1", f"{tmp_path}/old/b/checkpoint"), {"offsets/1": "b's"})
    # in another order than before
    for table in "ba":
        restored.start(tmp_path / f"new/{table}/checkpoint")
    assert content(tmp_path / "new/b/checkpoint")["offsets/1"] == "b's"
    assert content(tmp_path / "new/a/checkpoint") == FILES


def test_a_query_does_not_begin_empty_while_its_state_may_be_there(
    restored: Restored, tmp_path: Path
) -> None:
    restored.saved(tmp_path / "a")
    with pytest.raises(StateIncompatible, match=r"not gone on from so far: start-1-\w+ \(was in .*/a\)"):
        restored.start(tmp_path / "b", "start-2")
    # what has a name is known by it alone
    restored.start(tmp_path / "c", name="new")
    restored.saved(tmp_path / "a", allow=True)
    restored.start(tmp_path / "b", "start-2")
    assert content(tmp_path / "b") == content(tmp_path / "c") == {}


def test_names_lead_nowhere_else(restored: Restored, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    write(victim, FILES)
    restored.saved(tmp_path / "a", names=("../victim",))
    restored.start(tmp_path / "a")
    assert content(victim) == FILES


def test_a_driver_that_lost_the_job_puts_nothing_there(restored: Restored, tmp_path: Path) -> None:
    def lost() -> None:
        raise LeaseLost("another driver has it")

    restored.saved(tmp_path / "a")
    with pytest.raises(LeaseLost):
        restored.start(tmp_path / "b", fence=lost)
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("text", ["", '{"path":', "[]"])
def test_a_damaged_list_is_one_error_that_is_not_tried_again(
    restored: Restored, tmp_path: Path, text: str
) -> None:
    restored.saved(tmp_path / "a")
    write(restored.job, {"saved-queries.json": text})
    with pytest.raises(StateDamaged, match="saved-queries.json is damaged") as raised:
        restored.start(tmp_path / "b")
    assert not raised.value.retryable and not (tmp_path / "b").exists()


def test_state_that_is_not_whole_is_one_error_that_names_the_file(
    restored: Restored, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restored.saved(tmp_path / "a", names=("copy",))
    (restored.job / "copy/offsets/0").unlink()
    with pytest.raises(SavepointInvalid, match="job/copy/offsets/0 is missing"):
        restored.start(tmp_path / "b", name="copy")
    # or it goes while it is copied
    write(restored.job / "copy", FILES)

    def gone(files: object, paths: Mapping[str, str], check: Callable[[], None]) -> None:
        raise SourceFileGone(next(iter(paths)))

    monkeypatch.setattr(saved_queries, "copy_files", gone)
    with pytest.raises(SavepointInvalid, match="job/copy/.* is missing"):
        restored.start(tmp_path / "b", name="copy")
    assert content(tmp_path / "b") == {}


def test_what_is_found() -> None:
    saved = SavedQuery("copy", "/a"), SavedQuery("start-1", "/j/start-1"), SavedQuery("x", "/x")
    named, at_place, other = saved

    def found(name: str, location: str) -> SavedQuery | None:
        return find(saved, name, location, place_of)

    assert found("copy", "/b") is named
    assert found("new", "/x") is other, "the name is new, the location is not"
    assert found("start-1-0123ab", "/b") is at_place
    assert found("start-2", "/b") is None and found("new", "/b") is None
