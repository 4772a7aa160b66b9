"""Which files one committed batch needs."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from yarnflow.spark.state.files import (
    StateFilesMissing,
    names_schemas,
    needed_files,
    numbered,
    with_schemas_below,
    zip_references,
)


def no_zip(path: str) -> tuple[str, ...]:
    raise AssertionError(path)


def logs(offsets: range, commits: range) -> list[str]:
    return ["metadata", *(f"offsets/{n}" for n in offsets), *(f"commits/{n}" for n in commits)]


def test_logs_of_a_running_query_are_cut_off_after_the_batch() -> None:
    listing = [*logs(range(20), range(19)), "sources/0/0", "end-of-input/ab/sentinel.parquet"]
    assert needed_files(listing, 10, False, no_zip) == (
        "commits/10", "commits/9", "end-of-input/ab/sentinel.parquet", "metadata", "offsets/10", "offsets/9",
        "sources/0/0",
    )  # fmt: skip


def test_the_planned_batch_of_a_stopped_query_goes_along() -> None:
    listing = logs(range(12), range(11))
    assert "offsets/11" in needed_files(listing, 10, True, no_zip)
    assert "offsets/11" not in needed_files(listing, 10, False, no_zip)


def test_nothing_committed_needs_no_state() -> None:
    listing = ["metadata", "offsets/0", "state/0/0/1.delta", "state/0/_metadata/metadata"]
    assert needed_files(listing, -1, True, no_zip) == ("metadata", "offsets/0")


def test_hashmap_state_is_the_newest_snapshot_and_the_changes_after_it() -> None:
    state = [f"state/0/1/{v}.delta" for v in range(1, 15)] + ["state/0/1/4.snapshot", "state/0/1/9.snapshot"]
    found = needed_files([*logs(range(14), range(14)), *state], 10, False, no_zip)
    assert [p for p in found if p.startswith("state")] == [
        "state/0/1/10.delta", "state/0/1/11.delta", "state/0/1/9.snapshot",
    ]  # fmt: skip
    # a snapshot of a later version is no use
    found = needed_files([*logs(range(14), range(14)), *state], 7, False, no_zip)
    assert [p for p in found if p.startswith("state")] == [
        "state/0/1/4.snapshot", "state/0/1/5.delta", "state/0/1/6.delta", "state/0/1/7.delta",
        "state/0/1/8.delta",
    ]  # fmt: skip


def test_rocksdb_state_is_a_snapshot_its_tables_and_the_changes_after_it() -> None:
    state = [f"state/0/1/left/{v}.changelog" for v in range(1, 15)]
    state += ["state/0/1/left/9.zip", "state/0/1/left/SSTs/a.sst", "state/0/1/left/SSTs/b.sst"]
    state += ["state/0/1/_metadata/schema", "state/0/_metadata/metadata", "state/0/1/left/10.changelog.crc"]
    listing = [*logs(range(14), range(14)), *state]
    found = needed_files(listing, 10, False, lambda path: ["SSTs/b.sst"])
    assert [p for p in found if p.startswith("state")] == [
        "state/0/1/_metadata/schema", "state/0/1/left/10.changelog", "state/0/1/left/10.changelog.crc",
        "state/0/1/left/11.changelog", "state/0/1/left/9.zip", "state/0/1/left/SSTs/b.sst",
        "state/0/_metadata/metadata",
    ]  # fmt: skip
    with pytest.raises(StateFilesMissing, match="state/0/1/left/SSTs/c.sst"):
        needed_files(listing, 10, False, lambda path: ["SSTs/c.sst"])


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("offsets/10", "offsets/10"),
        ("commits/10", "commits/10"),
        ("state/0/0/6.delta", "state/0/0: version 11 of the state is not complete"),
        ("state/0/0/11.delta", "state/0/0: version 11 of the state is not complete"),
    ],
)
def test_what_is_missing_is_named(missing: str, message: str) -> None:
    listing = [*logs(range(12), range(12)), *(f"state/0/0/{v}.delta" for v in range(1, 13))]
    needed_files(listing, 10, False, no_zip)
    listing.remove(missing)
    with pytest.raises(StateFilesMissing, match=message):
        needed_files(listing, 10, False, no_zip)


def test_versions_with_ids_of_their_own_are_all_taken_up_to_the_batch() -> None:
    state = ["state/0/0/10_3f-a.delta", "state/0/0/11_3f-b.delta", "state/0/0/12_3f-c.delta"]
    found = needed_files([*logs(range(12), range(12)), *state], 10, False, no_zip)
    assert [p for p in found if p.startswith("state")] == state[:2]


def test_schemas_of_later_batches_stay_behind() -> None:
    state = ["state/0/_metadata/v2/0", "state/0/_metadata/v2/11", "state/0/_stateSchema/default/0_ab"]
    found = needed_files([*logs(range(12), range(12)), *state], 10, False, no_zip)
    assert [p for p in found if p.startswith("state")] == [state[0], state[2]]


def test_a_rocksdb_snapshot_names_its_files() -> None:
    described = {
        "sstFiles": [{"localFileName": "1.sst", "dfsSstFileName": "1-ab.sst", "sizeBytes": 3}],
        "logFiles": [{"localFileName": "1.log", "dfsLogFileName": "1-ab.log", "sizeBytes": 3}],
        "numKeys": 2,
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("metadata", "v1\n" + json.dumps(described))
    assert zip_references(content.getvalue()) == ("SSTs/1-ab.sst", "logs/1-ab.log")


def test_numbered() -> None:
    assert numbered(["10", "9", ".10.crc", "x", "11.compact"]) == [9, 10]


def state_metadata(directory: str) -> dict[str, object]:
    schema = f"{directory}/state/0/_stateSchema/default/0_e68d"
    return {"operatorInfo": {"operatorId": 0}, "stateStoreInfo": [{"stateSchemaFilePaths": [schema]}]}


def test_state_that_was_moved_finds_its_schemas() -> None:
    content = f"v2\n{json.dumps(state_metadata('file:/state/of/gone/query-elements'))}".encode()
    version, text = with_schemas_below(content, "hdfs:///jobs/new/query-elements").decode().split("\n")
    assert version == "v2" and json.loads(text) == state_metadata("hdfs:///jobs/new/query-elements")
    assert names_schemas("state/12/_metadata/v2/7")
    assert not names_schemas("state/0/_stateSchema/default/0_e68d")
    assert not names_schemas("state/0/_metadata/0")
