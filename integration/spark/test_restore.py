"""Starts from saved state: what is refused, claimed, made good after a crash, and read as a table."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.conftest import wait_until
from integration.spark.savepoint_support import (
    STOP,
    Input,
    Job,
    counting,
    expected_totals,
    read_manifest,
    restored,
    totals,
    use_backend,
)
from yarnflow.core.checkpoint.manifest import METADATA_FILE, SavepointMetadata, to_bytes
from yarnflow.core.checkpoint.messages import CheckpointKind, ClaimMode, RestoreSettings
from yarnflow.core.ids import JobId
from yarnflow.errors import SavepointInvalid, SavepointNotFound, StateIncompatible
from yarnflow.fs.file_systems import file_systems
from yarnflow.graph.state.shape import shape_of
from yarnflow.ha.stores.latest_states import FileLatestStates
from yarnflow.ha.stores.state_owner import FileStateOwner
from yarnflow.spark.checkpoints.restoring.restore import restore
from yarnflow.spark.state.reader import describe, read_state

#: records of the savepoint
SAVED = 30


@pytest.fixture(scope="module")
def spark(spark: SparkSession) -> SparkSession:
    use_backend(spark)
    return spark


@pytest.fixture(autouse=True)
def _nothing_left_running(spark: SparkSession) -> Iterator[None]:
    """A test that fails must not make the next one fail."""
    yield
    for query in spark.streams.active:
        query.stop()


def rewrite_manifest(directory: Path, manifest: SavepointMetadata) -> None:
    (directory / METADATA_FILE).write_bytes(to_bytes(manifest))


def take(spark: SparkSession, directory: Path) -> tuple[Input, Path]:
    """A savepoint of three batches of a running aggregate."""
    source = Input(directory / "in")
    source.add(2)
    job = Job(spark, counting(source, directory / "out"), directory)
    wait_until(lambda: (directory / "checkpoint/query-counts/commits/2").exists(), "three batches")
    job.savepoint(directory / "savepoint", STOP)
    job.ended()
    assert source.written == SAVED
    return source, directory / "savepoint"


@pytest.fixture(scope="module")
def first_taken(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Input, Path]:
    """One that stays as it is."""
    return take(spark, tmp_path_factory.mktemp("taken"))


@pytest.fixture
def taken(first_taken: tuple[Input, Path], tmp_path: Path) -> tuple[Input, Path]:
    """A copy of the savepoint, to be damaged; the input, which has more the later the test, is the same."""
    source, savepoint = first_taken
    shutil.copytree(savepoint, tmp_path / "savepoint")
    return source, tmp_path / "savepoint"


def goes_on(spark: SparkSession, source: Input, directory: Path) -> None:
    out = directory / "out"
    source.add(1)
    job = Job(spark, counting(source, out), directory)
    wait_until(lambda: totals(out) == expected_totals(source.written), "the job to go on")
    job.cancel()


@pytest.mark.parametrize(
    "damage", ["flip", *(pytest.param(damage, marks=pytest.mark.drill) for damage in ("shorten", "remove"))]
)
def test_a_damaged_file_is_named(
    spark: SparkSession, tmp_path: Path, taken: tuple[Input, Path], damage: str
) -> None:
    victim = next(taken[1].glob("query-counts/state/0/1/*.*"))
    content = victim.read_bytes()
    if damage == "flip":
        victim.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    elif damage == "shorten":
        victim.write_bytes(content[:-1])
    else:
        victim.unlink()
    word = "missing" if damage == "remove" else "damaged"
    with pytest.raises(SavepointInvalid, match=f"{re.escape(str(victim))} is {word}"):
        restore(spark, RestoreSettings(str(taken[1])), str(tmp_path / "job2/checkpoint"), None)
    assert not (tmp_path / "job2/checkpoint/query-counts").exists()
    # the user brings the file back and submits again
    victim.write_bytes(content)
    restore(spark, RestoreSettings(str(taken[1])), str(tmp_path / "job2/checkpoint"), None)
    goes_on(spark, taken[0], tmp_path / "job2")


@pytest.mark.gate
def test_nothing_of_a_savepoint_is_left_out(
    spark: SparkSession, tmp_path: Path, taken: tuple[Input, Path]
) -> None:
    """As a query named ``a/b`` would be, which has no directory of its own."""
    manifest = read_manifest(taken[1])
    (position,) = manifest.positions
    settings, target = RestoreSettings(str(taken[1])), str(tmp_path / "job2/checkpoint")
    rewrite_manifest(taken[1], replace(manifest, positions=(replace(position, query="a/counts"),)))
    with pytest.raises(SavepointInvalid, match="belongs to no query"):
        restore(spark, settings, target, None)
    rewrite_manifest(taken[1], replace(manifest, files=()))
    with pytest.raises(SavepointInvalid, match="no files of query counts"):
        restore(spark, settings, target, None)
    assert not (tmp_path / "job2").exists()


@pytest.mark.gate
def test_a_program_that_does_not_fit_is_refused(
    spark: SparkSession, tmp_path: Path, taken: tuple[Input, Path]
) -> None:
    changed = counting(taken[0], tmp_path / "out", ("count(*) AS c", "max(n) AS m"))
    with pytest.raises(StateIncompatible, match="counts"):
        restore(
            spark,
            RestoreSettings(str(taken[1]), ClaimMode.CLAIM),
            str(tmp_path / "job2/checkpoint"),
            shape_of(changed.job()),
        )
    assert not (tmp_path / "job2").exists()
    assert (taken[1] / METADATA_FILE).exists()


def test_nothing_there(spark: SparkSession, tmp_path: Path) -> None:
    assert restore(spark, RestoreSettings(), str(tmp_path / "job"), None) is None
    with pytest.raises(SavepointNotFound, match="no _metadata"):
        restore(spark, RestoreSettings(str(tmp_path / "nothing")), str(tmp_path / "job"), None)


def test_a_crash_in_between_is_made_good(
    spark: SparkSession, tmp_path: Path, taken: tuple[Input, Path]
) -> None:
    settings = RestoreSettings(f"{taken[1]}/{METADATA_FILE}", ClaimMode.CLAIM)
    job_dir = tmp_path / "job2/checkpoint"
    half = job_dir / "query-counts.restoring-0123/offsets"
    half.mkdir(parents=True)
    (half / "99").write_text("left by a driver that died")
    first = restore(spark, settings, str(job_dir), None)
    assert first is not None and first.claim_mode == "CLAIM"
    assert not taken[1].exists(), "claimed state belongs to the job"
    goes_on(spark, taken[0], tmp_path / "job2")
    # the next driver of the job: everything is in place, and has gone on
    commits = sorted((job_dir / "query-counts/commits").iterdir())
    assert restore(spark, settings, str(job_dir), None) == first
    assert sorted((job_dir / "query-counts/commits").iterdir()) == commits


def test_a_retained_checkpoint_goes_on_at_the_last_commit(spark: SparkSession, tmp_path: Path) -> None:
    """``chk-<n>`` says where the job stood then; its directory has gone on since."""
    source, savepoint = take(spark, tmp_path)
    manifest = read_manifest(savepoint)
    retained = tmp_path / "checkpoint/chk-3"
    retained.mkdir()
    earlier = replace(manifest.positions[0], batch_id=1)
    rewrite_manifest(
        retained, replace(manifest, kind=CheckpointKind.CHECKPOINT, files=(), positions=(earlier,))
    )
    state = restore(spark, RestoreSettings(str(retained)), str(tmp_path / "job2/checkpoint"), None)
    assert state is not None and state.kind is CheckpointKind.CHECKPOINT
    assert (tmp_path / "job2/checkpoint/query-counts/commits/2").exists()
    assert not (tmp_path / "job2/checkpoint/query-counts/sink-identity").exists(), "the same job goes on"
    goes_on(spark, source, tmp_path / "job2")
    lost = replace(manifest.positions[0], batch_id=50)
    rewrite_manifest(
        retained, replace(manifest, kind=CheckpointKind.CHECKPOINT, files=(), positions=(lost,))
    )
    with pytest.raises(SavepointInvalid, match="commits/50 is missing"):
        restore(spark, RestoreSettings(str(retained)), str(tmp_path / "job3/checkpoint"), None)


@pytest.mark.gate
def test_the_state_is_read_as_a_table(spark: SparkSession, taken: tuple[Input, Path]) -> None:
    (found,) = describe(spark, str(taken[1]))
    assert (found.query, found.operator, found.operator_name) == ("counts", 0, "stateStoreSave")
    table = read_state(spark, str(taken[1]), "counts")
    assert table.columns[0] == "key.k" and not table.more
    expected = {(str(k), str(c), str(s)) for k, (c, s) in expected_totals(SAVED).items()}
    assert set(table.rows) == expected
    assert len(read_state(spark, str(taken[1]), "counts", limit=1).rows) == 1
    with pytest.raises(SavepointNotFound, match="it has counts"):
        read_state(spark, str(taken[1]), "other")


def test_two_jobs_from_one_savepoint_do_not_name_their_files_alike(
    spark: SparkSession, tmp_path: Path, taken: tuple[Input, Path]
) -> None:
    identities = set()
    for name in ("job2", "job3"):
        restore(spark, RestoreSettings(str(taken[1])), str(tmp_path / name), None)
        identities.add((tmp_path / name / "query-counts/sink-identity").read_text())
    assert len(identities) == 2


def test_a_job_that_was_lost_before_its_first_checkpoint_is_gone_on_from(
    spark: SparkSession, tmp_path: Path
) -> None:
    lost_id, root = JobId("a" * 32), tmp_path / "state"
    (root / lost_id).mkdir(parents=True)
    (tmp_path / "lost").mkdir()
    (tmp_path / "lost/checkpoint").symlink_to(root / lost_id)
    source = Input(tmp_path / "in")
    graph = counting(source, tmp_path / "out")
    latest = FileLatestStates(file_systems(), f"file://{root}")
    latest.begin("daily", lost_id)
    owner = FileStateOwner(file_systems(), f"file://{root}/{lost_id}", lost_id, lambda job_id: None)
    owner.hold()
    owner.describe(
        to_bytes(
            SavepointMetadata(
                1, CheckpointKind.CHECKPOINT, lost_id, "job", "daily", 1, "0", shape_of(graph.job())
            )
        )
    )
    source.add(2)
    job = Job(spark, graph, tmp_path / "lost")
    wait_until(lambda: (root / lost_id / "query-counts/commits/2").exists(), "three batches")
    job.cancel()

    latest.begin("daily", JobId("b" * 32))
    found = latest.lost("daily", JobId("b" * 32))
    assert found is not None and found.batches == (("counts", 2),)
    source.add(1)
    path, out = Path(found.path.removeprefix("file://")), tmp_path / "next"
    changed = counting(source, tmp_path / "refused", ("count(*) AS c", "max(n) AS m"))
    with pytest.raises(StateIncompatible, match="counts"):
        restored(spark, changed, path, tmp_path / "refused")
    again = restored(spark, counting(source, out), path, tmp_path / "job2")
    wait_until(lambda: totals(out) == expected_totals(source.written), "the job to go on")
    again.cancel()
