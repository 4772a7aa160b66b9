"""State that is brought to a job, by drivers of which one alone is the job's; without Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.spark.checkpoints.local_files import LocalFiles
from tests.spark.checkpoints.restoring.states import (
    NO_SPARK,
    QUERY_FILES,
    SHAPE,
    checkpoint,
    restore,
    retained,
)
from yarnflow.core.checkpoint.manifest import METADATA_FILE, from_bytes, to_bytes
from yarnflow.core.checkpoint.messages import RestoreSettings
from yarnflow.core.checkpoint.program_shape import QueryShape
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.errors import LeaseLost, SavepointInvalid, StateWentBack, StorageError
from yarnflow.spark.checkpoints.damage.going_back import mend
from yarnflow.spark.checkpoints.placing import work_directory
from yarnflow.spark.checkpoints.restoring import restore as restoring
from yarnflow.spark.checkpoints.saved_queries import SAVED_QUERIES_FILE, SavedQueries, SavedQuery


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


@pytest.mark.parametrize("claim", [False, True])
def test_what_sinks_know_of_a_batch_that_was_begun_comes_with_a_retained_checkpoint(
    savepoint: Path, tmp_path: Path, claim: bool
) -> None:
    job = tmp_path / "job"
    of_sink = "sinks/elements/a-b/layout.json"
    query = {"query-elements/offsets/1": QUERY_FILES["query-elements/offsets/0"], **QUERY_FILES}
    retained = checkpoint(tmp_path / "earlier", {**query, of_sink: "{}", "sources/0/kafka.json": "{}"})
    restore(retained, job, lambda: None, claim)
    assert {path for path in (of_sink, "query-elements/offsets/1") if (job / path).exists()} == {
        of_sink, "query-elements/offsets/1"
    }  # fmt: skip
    # it is the sink that the earlier job wrote to
    assert (job / "query-elements/metadata").read_text() == '{"id":"a"}'
    assert not (job / "query-elements/sink-identity").exists()
    assert retained.parent.exists() is not claim


@pytest.mark.parametrize("kind, name", [("GRAPH", "query-silent"), ("SCRIPT", "silent")])
def test_a_query_that_was_silent_since_its_job_was_started_does_not_begin_empty(
    savepoint: Path, tmp_path: Path, kind: str, name: str
) -> None:
    """A checkpoint does not name it: the driver had no batch of it to tell of."""
    job = tmp_path / "job"
    silent = {path.replace("query-elements", name): text for path, text in QUERY_FILES.items()}
    of_job = {**QUERY_FILES, **silent, f"{name}-new/metadata": "{}"}
    retained = checkpoint(tmp_path / "earlier", of_job)
    manifest = from_bytes((retained / METADATA_FILE).read_bytes(), "here")
    shape = replace(SHAPE, kind=kind, queries=tuple(QueryShape(q, q) for q in ("elements", "silent")))
    positions = tuple(replace(p, query="query-elements") for p in manifest.positions)
    kept = positions if kind == "SCRIPT" else manifest.positions
    manifest = replace(manifest, program=shape, positions=kept)
    (retained / METADATA_FILE).write_bytes(to_bytes(manifest))
    restore(retained, job, lambda: None)
    assert {path for path in silent if (job / path).exists()} == set(silent)
    assert not (job / f"{name}-new").exists(), "it had never committed a batch"
    saved = job / "saved-queries.json"
    assert not saved.exists() or '"query":"silent"' in saved.read_text()


@pytest.mark.parametrize("is_there", [True, False])
def test_nor_does_one_that_a_script_has_at_a_place_of_its_own(
    savepoint: Path, tmp_path: Path, is_there: bool
) -> None:
    place = tmp_path / "place"
    of_script = {path.removeprefix("query-"): text for path, text in QUERY_FILES.items()}
    retained = checkpoint(tmp_path / "earlier", of_script)
    manifest = from_bytes((retained / METADATA_FILE).read_bytes(), "here")
    (retained / METADATA_FILE).write_bytes(to_bytes(replace(manifest, program=replace(SHAPE, kind="SCRIPT"))))
    saved = SavedQuery("old", "/before", now_query="silent", now_location=str(place))
    (retained.parent / SAVED_QUERIES_FILE).write_text(to_json(SavedQueries("/before/chk-1", (saved,))))
    if is_there:
        shutil.copytree(tmp_path / "earlier/elements", place)
    restore(retained, tmp_path / "job", lambda: None)
    found = from_json(SavedQueries, (tmp_path / "job" / SAVED_QUERIES_FILE).read_text()).queries
    assert [query for query in found if query.query != "elements"] == (
        [SavedQuery("silent", str(place), staged=False)] if is_there else []
    )


@pytest.mark.parametrize("content", ["", '{"path":', "no JSON"])
def test_a_damaged_note_of_what_was_restored_is_written_anew(
    content: str, savepoint: Path, tmp_path: Path
) -> None:
    """All was in its place before; nothing that was claimed is removed on the word of such a note."""
    job = tmp_path / "job"
    restore(savepoint, job, lambda: None)
    (job / "restored.json").write_text(content)
    again = restore(savepoint, job, lambda: None, claim=True)
    assert again is not None and again.path == str(savepoint) and savepoint.exists()
    assert restore(savepoint, job, lambda: None, claim=True) == again and savepoint.exists()


def test_a_damaged_checkpoint_is_brought_wholly_and_mended_by_the_new_job(
    savepoint: Path, tmp_path: Path
) -> None:
    """As a cluster leaves it whose machines lost their power."""
    batches = {f"query-elements/{log}/{n}": text for n in range(3) for log, text in (
        ("offsets", 'v1\n{"conf":{}}\n-'), ("commits", "v1\n{}")
    )}  # fmt: skip
    files = {**QUERY_FILES, **batches, "query-elements/offsets/3": ""}
    checkpoint = retained(tmp_path / "before", files)
    assert restore(checkpoint, tmp_path / "job", lambda: None) is not None
    with pytest.raises(StateWentBack, match="offsets/3 is empty; query elements goes on from batch 2"):
        mend(LocalFiles(), str(tmp_path / "job/query-elements"), "elements", lambda: None)
    # what was copied stays as it was
    assert (tmp_path / "before/query-elements/offsets/3").exists()
    settings = RestoreSettings(str(checkpoint))
    other = replace(SHAPE, partitions=4)
    with pytest.raises(SavepointInvalid, match="offsets/3 is empty, and only the same program"):
        restoring._Restore(NO_SPARK, settings, str(tmp_path / "job2"), b"", True, {}, lambda: None).run(
            other, False
        )


def test_a_damaged_description_of_state_is_told_by_the_new_job(
    savepoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "query-elements/state/0/_metadata/v2/0"
    empty = retained(tmp_path / "empty", {**QUERY_FILES, path: ""})
    assert restore(empty, tmp_path / "job", lambda: None) is not None
    with pytest.raises(StateWentBack, match="_metadata/v2/0 is empty"):
        mend(LocalFiles(), str(tmp_path / "job/query-elements"), "elements", lambda: None)
    # that of which it cannot be known what is in it
    untrusted = restoring._Restore(
        NO_SPARK, RestoreSettings(str(empty)), str(tmp_path / "job2"), b"", False, {}, lambda: None
    )
    monkeypatch.setattr(restoring, "doubt_of", lambda *_: "all may write")
    with pytest.raises(SavepointInvalid, match="empty/query-elements/state/0/_metadata/v2/0 is damaged"):
        untrusted.run(None, False)
    cut = retained(tmp_path / "cut", {**QUERY_FILES, path: 'v2\n{"stateStoreInfo":'})
    with pytest.raises(SavepointInvalid, match="cut/query-elements/state/0/_metadata/v2/0 is damaged"):
        restore(cut, tmp_path / "job3", lambda: None)


def test_a_damaged_checkpoint_of_a_script_is_refused(savepoint: Path, tmp_path: Path) -> None:
    checkpoint = retained(tmp_path / "before", {**QUERY_FILES, "query-elements/offsets/1": ""})
    manifest = checkpoint / METADATA_FILE
    manifest.write_text(manifest.read_text().replace('"GRAPH"', '"SCRIPT"'))
    shutil.move(tmp_path / "before/query-elements", tmp_path / "before/elements")
    with pytest.raises(SavepointInvalid, match="elements/offsets/1 is empty, and a script cannot go on"):
        restore(checkpoint, tmp_path / "job", lambda: None)
    assert not (tmp_path / "job").exists()
