"""Queries whose files are damaged, brought back to their newest sound batch; without Spark."""

from __future__ import annotations

import io
import json
import uuid
import zipfile
from pathlib import Path

import pytest

from tests.spark.checkpoints.local_files import LocalFiles
from yarnflow.core.checkpoint.messages import CheckpointKind, ClaimMode, RestoredState
from yarnflow.core.json_codec import to_json
from yarnflow.errors import LeaseLost, StateDamaged, StateWentBack, StorageError
from yarnflow.spark.checkpoints.damage.going_back import Again, mend
from yarnflow.spark.checkpoints.damage.soundness import damage_at_start
from yarnflow.spark.checkpoints.job import no_fence
from yarnflow.spark.checkpoints.positions import DRAINED_MS

#: what a batch with this offset has read up to
OFFSETS_ENTRY = 'v1\n{{"batchWatermarkMs":0,"batchTimestampMs":{0}}}\n{{"logOffset":{0}}}'
COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


class Query:
    """A query's directory on this machine, with batches 0 to 5 committed and 6 planned.

    One state store has a snapshot as of batches 1 and 4, and the changes of each batch.
    """

    def __init__(self, directory: Path, committed: int = 5, planned: int = 6) -> None:
        self.files = LocalFiles()
        self.directory = directory
        self.write("metadata", '{"id":"first"}')
        for number in range(planned + 1):
            self.write(f"offsets/{number}", OFFSETS_ENTRY.format(number))
            self.write(f"sources/0/{number}", 'v1\n{"path":"file:///in","timestamp":1,"batchId":0}')
        for number in range(committed + 1):
            self.write(f"commits/{number}", COMMIT)
            self.write(f"state/0/0/{number + 1}.changelog", f"changes of {number}")
        for version in (2, 5):
            self.snapshot(version)

    def snapshot(self, version: int) -> None:
        table = f"00000{version}-ab.sst"
        described = {"sstFiles": [{"dfsSstFileName": table, "sizeBytes": 5}], "numKeys": 1}
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr(zipfile.ZipInfo("metadata"), f"v1\n{json.dumps(described)}")
        self.write(f"state/0/0/SSTs/{table}", "table")
        (self.directory / f"state/0/0/{version}.zip").write_bytes(content.getvalue())

    def write(self, path: str, content: str) -> None:
        self.files.write(f"{self.directory}/{path}", content.encode())

    def read(self, path: str) -> str:
        return self.files.read(f"{self.directory}/{path}").decode()

    def names(self, directory: str) -> list[str]:
        return sorted(self.files.children(f"{self.directory}/{directory}"))

    def fault(self, path: str) -> None:
        self.files.faults.add(f"{self.directory}/{path}")

    def mend(self, **more: object) -> None:
        mend(self.files, str(self.directory), "elements", no_fence, **more)  # type: ignore[arg-type]

    def went_back(self, **more: object) -> str:
        with pytest.raises(StateWentBack) as raised:
            self.mend(**more)
        # whoever looks next finds all in order
        self.mend(all_state=True)
        return raised.value.message


@pytest.fixture
def query(tmp_path: Path) -> Query:
    return Query(tmp_path / "query-elements")


def test_what_is_sound_is_left_alone(query: Query, tmp_path: Path) -> None:
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    query.mend()
    query.mend(all_state=True)
    assert before == {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    Query(tmp_path / "new", -1, -1).mend()
    Query(tmp_path / "begun", -1, 0).mend(all_state=True)


def test_an_empty_entry_of_a_planned_batch_is_planned_anew_for_other_sinks(query: Query) -> None:
    """As a machine leaves it that loses its power: the batch may have been written, wholly or in part."""
    query.write("offsets/6", "")
    said = query.went_back()
    assert f"{query.directory}/offsets/6 is empty; query elements goes on from batch 5" in said
    assert "the input of batch 6 is not known any more" in said and "may be there twice" in said
    assert query.names("offsets") == ["0", "1", "2", "3", "4", "5"] == query.names("commits")
    assert uuid.UUID(query.read("sink-identity")) and "written" not in query.names("")
    assert query.names("damaged") == ["offsets.6"] and query.names("again") == []


@pytest.mark.parametrize("content", ["", "v1", "v1\n{}tail", 'v1\n{"nextBatchWatermarkMs"', "\0\0\0\0"])
def test_a_damaged_commit_is_done_again_with_the_same_input(query: Query, content: str) -> None:
    query.write("commits/5", content)
    said = query.went_back()
    assert "goes on from batch 4, the newest that is sound; batches 5 to 6 are done again" in said
    assert query.names("commits") == ["0", "1", "2", "3", "4"]
    assert query.names("offsets") == ["0", "1", "2", "3", "4", "5"] and query.names("again") == ["6"]
    # of batch 5, which is done again
    assert "6.changelog" not in query.names("state/0/0") and "5.changelog" in query.names("state/0/0")
    # the sinks have batch 5, and may have some of batch 6
    assert query.read("written") == "5"
    assert query.names("sink-identity") == [] and query.read("metadata") == '{"id":"first"}'


def test_damaged_state_is_not_looked_for_at_each_start(query: Query) -> None:
    query.fault("state/0/0/6.changelog")
    query.mend()


@pytest.mark.parametrize("path", ["state/0/0/6.changelog", "state/0/0/5.zip"])
def test_empty_files_of_state_are_found_at_each_start(query: Query, path: str) -> None:
    """Spark takes changes of which there is nothing for none."""
    query.write(path, "")
    assert f"{path} is empty" in query.went_back()


def test_empty_files_of_a_batch_that_is_done_again_are_no_damage(query: Query) -> None:
    query.write("state/0/0/7.changelog", "")
    query.mend()


def test_an_empty_table_that_no_snapshot_names_is_no_damage(query: Query) -> None:
    """As an upload leaves it that was cut off."""
    query.write("state/0/0/SSTs/000009-cd.sst", "")
    assert damage_at_start(query.files, str(query.directory)) is None
    query.mend(all_state=True)


def test_changes_that_are_damaged_are_made_again(query: Query) -> None:
    query.fault("state/0/0/6.changelog")
    said = query.went_back(all_state=True)
    assert "state/0/0/6.changelog does not fit its checksum" in said and "from batch 4" in said
    assert query.names("again") == ["6"] and query.names("damaged") == ["state.0.0.6.changelog"]


@pytest.mark.parametrize("damage", ["fault", "empty", "length", "gone", "snapshot", "zip"])
def test_an_older_snapshot_will_do_with_all_changes_after_it(query: Query, damage: str) -> None:
    if damage == "fault":
        query.fault("state/0/0/SSTs/000005-ab.sst")
    elif damage == "empty":
        query.write("state/0/0/SSTs/000005-ab.sst", "")
    elif damage == "length":
        query.write("state/0/0/SSTs/000005-ab.sst", "tab")
    elif damage == "gone":
        query.files.delete(f"{query.directory}/state/0/0/SSTs/000005-ab.sst")
    elif damage == "snapshot":
        query.write("state/0/0/5.zip", "PK no archive")
    else:
        query.fault("state/0/0/5.zip")
    said = query.went_back(all_state=True)
    assert "from batch 5, the newest that is sound; batch 6 is done again" in said
    assert "5.zip" not in query.names("state/0/0") and "6.changelog" in query.names("state/0/0")


def test_what_spark_could_not_read_is_believed(query: Query) -> None:
    """Whatever RocksDB calls its copy of the table."""
    said = query.went_back(all_state=True, suspects=["SSTs/000005"])
    assert "SSTs/000005-ab.sst cannot be read by Spark" in said


def test_what_spark_could_not_read_is_looked_at(query: Query) -> None:
    query.fault("state/0/0/6.changelog")
    said = query.went_back(all_state=True, suspects=["state/0/0/6.changelog"])
    assert "6.changelog does not fit its checksum" in said


def test_an_older_snapshot_without_all_changes_will_not_do(query: Query) -> None:
    query.fault("state/0/0/5.zip")
    query.files.delete(f"{query.directory}/state/0/0/4.changelog")
    assert "goes on from batch 2" in query.went_back(all_state=True)
    assert query.names("again") == ["4", "5", "6"]


def test_schemas_of_state_have_no_other_versions(query: Query) -> None:
    query.write("state/0/_metadata/v2/0", "")
    query.files.delete(f"{query.directory}/offsets/0")
    with pytest.raises(StateDamaged, match="state/0/_metadata/v2/0 is empty"):
        query.mend(all_state=True)


def test_all_that_is_damaged_is_one_error(query: Query) -> None:
    for version in range(1, 7):
        query.fault(f"state/0/0/{version}.changelog")
    query.fault("state/0/0/2.zip")
    query.fault("state/0/0/5.zip")
    query.write("offsets/0", "")
    before = query.names("offsets"), query.names("state/0/0")
    for _ in range(2):
        with pytest.raises(StateDamaged) as raised:
            query.mend(all_state=True)
        assert "there is no committed batch whose files are sound" in raised.value.message
        assert "offsets/0 is empty" in raised.value.message and "--restore none" in raised.value.message
    assert before == (query.names("offsets"), query.names("state/0/0"))


def test_a_job_is_done_again_from_its_beginning_if_all_its_input_is_known(tmp_path: Path) -> None:
    query = Query(tmp_path / "query-elements", 0, 0)
    query.write("commits/0", "")
    said = query.went_back()
    assert "goes on from its beginning; batch 0 is done again with the same input, and written no" in said
    assert query.read("written") == "0"
    assert query.names("offsets") == ["0"] and query.names("commits") == []
    assert query.names("state/0/0") == ["SSTs"]


def test_it_never_begins_anew_without(query: Query, tmp_path: Path) -> None:
    query = Query(tmp_path / "other", 0, 0)
    query.write("offsets/0", "")
    with pytest.raises(StateDamaged):
        query.mend()


def test_what_was_planned_before_anything_was_committed_is_planned_anew(tmp_path: Path) -> None:
    query = Query(tmp_path / "query-elements", -1, 0)
    query.write("offsets/0", "")
    assert "goes on from its beginning" in query.went_back()
    assert query.names("offsets") == []


def test_an_entry_from_which_spark_takes_nothing_is_made_good(tmp_path: Path) -> None:
    query = Query(tmp_path / "query-elements", 5, 5)
    query.write("offsets/4", "")
    assert "from batch 5, the newest that is sound; nothing is done again" in query.went_back()
    assert query.read("offsets/4") == query.read("offsets/5")


@pytest.mark.parametrize("content", [None, "", '{"id":'])
def test_a_query_without_identity_gets_another(query: Query, content: str | None) -> None:
    if content is None:
        query.files.delete(f"{query.directory}/metadata")
    else:
        query.write("metadata", content)
    assert "batch 6 is done again with the same input, and rows of batch 6 may be" in query.went_back()
    assert json.loads(query.read("metadata"))["id"] == query.read("sink-identity") != ""


def test_a_lost_entry_of_a_source_is_read_anew_with_its_batch(query: Query) -> None:
    query.write("sources/0/6", "")
    query.write("offsets/6", "")
    assert "from batch 5" in query.went_back()
    assert query.names("sources/0") == ["0", "1", "2", "3", "4", "5"]


def test_a_lost_entry_of_a_source_that_batches_have_read_is_told(query: Query) -> None:
    query.write("sources/0/3", "")
    with pytest.raises(StateDamaged, match="sources/0/3 is empty"):
        query.mend(all_state=True)


def test_a_file_system_that_does_not_answer_is_no_damage(query: Query) -> None:
    query.files.unanswered.add(f"{query.directory}/offsets/6")
    with pytest.raises(StorageError, match="no answer"):
        query.mend()
    query.files.unanswered = {f"{query.directory}/state/0/0/5.zip"}
    with pytest.raises(StorageError, match="no answer"):
        query.mend(all_state=True)
    assert query.names("damaged") == []


def test_a_query_that_cannot_do_one_batch_again_is_left_as_it_is(query: Query) -> None:
    query.write("commits/5", "")
    with pytest.raises(StateDamaged, match="commits/5 is empty; query elements cannot be brought back"):
        query.mend(does_again=False)
    assert "5" in query.names("commits")


def test_a_driver_that_dies_meanwhile_is_made_good(tmp_path: Path) -> None:
    """At whatever change of a file it dies, or loses its job."""
    whole = Query(tmp_path / "whole")
    whole.fault("state/0/0/6.changelog")
    whole.write("commits/4", "")
    whole.went_back(all_state=True)
    expected = tree(whole.directory)
    for allowed in range(1, 40):
        query = Query(tmp_path / f"{allowed}")
        query.fault("state/0/0/6.changelog")
        query.write("commits/4", "")
        dying = Dying(query.files, allowed)
        try:
            mend(dying, str(query.directory), "elements", no_fence, all_state=True)  # type: ignore[arg-type]
        except LeaseLost:
            pass
        except StateWentBack:
            break
        with pytest.raises(StateWentBack):
            query.mend(all_state=True)
        assert tree(query.directory) == expected, allowed
    else:
        raise AssertionError("it never comes to its end")
    assert allowed > 5


class Dying:
    """Files, of which some changes succeed and then none."""

    def __init__(self, files: LocalFiles, allowed: int) -> None:
        self._files = files
        self._allowed = allowed

    def __getattr__(self, name: str) -> object:
        if name in ("write", "rename", "delete"):
            self._allowed -= 1
            if self._allowed < 0:
                raise LeaseLost("power cut")
        return getattr(self._files, name)


def tree(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


def test_a_query_that_is_brought_back_twice_has_still_been_written(query: Query) -> None:
    query.write("commits/5", "")
    query.went_back()
    query.write("commits/4", "")
    assert "batches 4 to 5 are done again with the same input, and written nowhere" in query.went_back()
    assert query.read("written") == "5" and query.names("again") == ["5", "6"]
    query.write("commits/3", "")
    query.write("offsets/4", "")
    # from here on there are other batches
    assert "may be there twice" in query.went_back()
    assert "written" not in query.names("") and query.names("again") == []


def test_a_file_of_ours_that_nobody_understands_is_no_passing_fault(query: Query) -> None:
    """Such as a sink's manifest."""
    path = f"{query.directory}/3.json"
    for content in ("", '{"rows":', "[]", '{"lines":1}'):
        query.write("3.json", content)
        with pytest.raises(StateDamaged) as raised:
            query.files.parsed(path, lambda text: int(json.loads(text)["rows"]), "delete it")
        assert raised.value.message.startswith(f"{path} is damaged: it ")
        assert raised.value.message.endswith("; delete it") and not raised.value.retryable
    query.write("3.json", '{"rows":1}')
    assert query.files.parsed(path, lambda text: int(json.loads(text)["rows"])) == 1


def test_batches_are_done_again_one_by_one(query: Query) -> None:
    query.write("commits/3", "")
    query.write("commits/4", "")
    query.write("commits/5", "")
    query.went_back()
    again = Again(query.files, str(query.directory))
    assert again.last == 6
    for batch in (3, 4, 5):
        # only this one may be done
        assert again.next(no_fence) and query.names("offsets")[-1] == str(batch)
        assert query.read(f"offsets/{batch}") == OFFSETS_ENTRY.format(batch)
        # a driver that dies before it has said that it is done finds the same
        assert again.next(no_fence) and query.names("offsets")[-1] == str(batch)
        query.write(f"commits/{batch}", COMMIT)
    # behind the last one nothing is known
    assert not again.next(no_fence) and query.names("offsets")[-1] == "6"
    assert again.last == -1 and query.names("again") == []
    assert not again.next(no_fence)


def test_a_query_that_was_drained_stays_so(query: Query) -> None:
    query.write("offsets/6", f'v1\n{{"batchWatermarkMs":{DRAINED_MS}}}\n{{"logOffset":5}}')
    assert not Again(query.files, str(query.directory)).is_drained()
    query.write("commits/5", "")
    query.went_back()
    assert Again(query.files, str(query.directory)).is_drained()


@pytest.mark.parametrize("claim_mode", list(ClaimMode))
def test_the_source_of_damaged_state_is_named(query: Query, claim_mode: ClaimMode) -> None:
    """What the user has named is elsewhere: the copy is in a directory that is called by the job's id."""
    query.files.delete(f"{query.directory}/commits")
    query.write("commits/0", "")
    state = RestoredState("hdfs://nn/savepoint-1", CheckpointKind.SAVEPOINT, 1, 2, claim_mode.value)
    query.write("../restored.json", to_json(state))
    with pytest.raises(StateDamaged) as raised:
        query.mend(does_again=False, all_state=True)
    how = "moved" if claim_mode is ClaimMode.CLAIM else "copied"
    said = raised.value.message
    assert f"{query.directory}/commits/0 is empty; what the job started from was {how}" in said
    assert "from hdfs://nn/savepoint-1; query elements cannot" in said
    query.write("../restored.json", "{")
    with pytest.raises(StateDamaged, match="commits/0 is empty; query elements cannot"):
        query.mend(does_again=False, all_state=True)
