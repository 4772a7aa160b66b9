"""Whether workers may unpickle what is in a state; without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.spark.checkpoints.restoring.states import NO_SPARK, retained, without_a_jvm
from yarnflow.core.checkpoint.manifest import METADATA_FILE, SavepointFile
from yarnflow.core.checkpoint.messages import RestoredState, RestoreSettings
from yarnflow.core.checkpoint.ownership import Access
from yarnflow.errors import StateNotTrusted
from yarnflow.spark.checkpoints.restoring import restore as restoring
from yarnflow.spark.checkpoints.restoring import trust
from yarnflow.spark.checkpoints.restoring.parts import Part
from yarnflow.spark.checkpoints.restoring.trust import without_elements
from yarnflow.spark.connectors.sources import SOURCES_DIRECTORY
from yarnflow.spark.run.query_plan import END_OF_INPUT
from yarnflow.testing.state import OwnersInMemory


def test_what_workers_would_unpickle_is_not_brought_from_state_that_is_in_doubt() -> None:
    source, end = "0123abcd", f"{END_OF_INPUT}/part-0.parquet"
    plain = [f"{source}/kafka.json", f"{source}/returning.json", f"{source}/17.arrow"]
    doubtful = [
        f"{source}/part.parquet", f"{source}/reader", f"{source}/more.PARQUET", f"{source}/x.arrow",
        f"{source}/other.json", f"{source}/part.parquet/kafka.json", "kafka.json", "../kafka.json",
    ]  # fmt: skip
    sources = part(SOURCES_DIRECTORY, [*plain, *doubtful])
    found = without_elements(sources)
    assert list(found.paths) == list(found.expected) == plain
    state = ["offsets/0", "state/0/0/1.delta", "sources/0/0"]
    found = without_elements(part("query-elements", [*state, end]))
    assert list(found.paths) == list(found.expected) == state
    # of a checkpoint, whose files nobody has listed
    unlisted = replace(sources, expected={})
    assert without_elements(unlisted) == replace(unlisted, paths=tuple(plain))


def part(name: str, paths: list[str]) -> Part:
    return Part("/before", name, tuple(paths), {path: SavepointFile(path, 1) for path in paths})


@pytest.mark.parametrize("owner", ["alice", "bob"])
def test_objects_in_a_retained_checkpoint_that_belongs_to_another_are_refused(
    owner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the job's own directory, where nobody else should write, but can."""
    without_a_jvm(monkeypatch)
    monkeypatch.setattr(trust, "classes_in_state", lambda spark, directory: ["posix.system"])
    owners = OwnersInMemory()
    monkeypatch.setattr(trust, "FileOwners", lambda files: owners)
    before = tmp_path / "jobs" / "before"
    retained(before)
    owners.add(str(before / "chk-3"), METADATA_FILE)
    owners.add(str(before / "query-elements"), "offsets/0", "commits/0", "metadata")
    owners.found[str(before / "query-elements" / "commits/0")] = Access(owner, 0o664)
    settings = RestoreSettings(str(before / "chk-3"))

    def start() -> RestoredState | None:
        return restoring.restore(NO_SPARK, settings, str(tmp_path / "jobs" / "job"), None)

    if owner == "alice":
        assert start() is not None
    else:
        with pytest.raises(StateNotTrusted, match="commits/0 belongs to bob, not to alice.*--trust-state"):
            start()
