"""What Spark says of state that it cannot read."""

from __future__ import annotations

import pytest

from yarnflow.errors import StorageError
from yarnflow.spark.run.state_errors import explained, suspicion_of

CHECKSUM = "org.apache.hadoop.fs.ChecksumException"
CHECKPOINT = "file:/data/job/query-elements"


@pytest.mark.parametrize(
    "said, files",
    [
        (
            f"{CHECKSUM}: Checksum error: {CHECKPOINT}/state/0/1/6.changelog at 0 exp: 1 got: 2",
            ("state/0/1/6.changelog",),
        ),
        (
            f"{CHECKSUM}: Checksum error: {CHECKPOINT}/state/0/1/SSTs/000008-a-b.sst at 0",
            ("state/0/1/SSTs/000008-a-b.sst",),
        ),
        (
            "Caused by: org.rocksdb.RocksDBException: block checksum mismatch: stored = 1, computed = 2, "
            "type = 4 in /tmp/spark/StateStoreId/000008.sst offset 0 size 90",
            ("SSTs/000008",),
        ),
        ("java.lang.IllegalStateException: Incomplete log file", ()),
        (f"Error reading delta file {CHECKPOINT}/state/0/1/5.delta of HDFSStateStoreProvider", None),
        ("[STREAMING_CHECKPOINT_MISSING_METADATA_FILE] Checkpoint location x is inconsistent", ()),
    ],
)
def test_what_cannot_pass_is_certain(said: str, files: tuple[str, ...] | None) -> None:
    found = suspicion_of(["py4j.protocol.Py4JJavaError: o1", f"Job aborted:\n{said}\n\tat x"])
    assert found is not None and found.certain and found.said == said.strip()
    assert found.files == (("state/0/1/5.delta",) if files is None else files)


@pytest.mark.parametrize(
    "said",
    [
        "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.",
        f"java.util.zip.ZipException: bad header\n{CHECKPOINT}/state/0/1/5.zip",
        "org.apache.spark.sql.execution.streaming.state.StateStoreException: x\njava.io.EOFException",
        "com.fasterxml.jackson.core.io.JsonEOFException: Unexpected end-of-input",
        f"java.io.FileNotFoundException: File {CHECKPOINT}/state/0/1/6.changelog does not exist",
        "[BATCH_METADATA_NOT_FOUND] Unable to find batch offsets/3.",
    ],
)
def test_what_may_pass_is_looked_at(said: str) -> None:
    found = suspicion_of([said])
    assert found is not None and not found.certain and found.files == ()


@pytest.mark.parametrize(
    "said",
    [
        "java.io.EOFException: SSL peer shut down incorrectly",
        "java.util.zip.ZipException: Not in GZIP format\nhdfs://n/in/1.csv.gz",
        "Job aborted due to stage failure: x\ncom.fasterxml.jackson.core.JsonParseException: Unexpected",
    ],
)
def test_words_that_name_no_state_are_not_looked_at(said: str) -> None:
    assert suspicion_of([said]) is None


def test_a_look_that_fails_hides_no_other_error() -> None:
    away = StorageError("the file system does not answer")

    def look(files: object) -> None:
        raise away

    possible = RuntimeError("[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred.")
    assert explained(possible, CHECKPOINT, look) is None
    assert explained(RuntimeError("Incomplete log file"), CHECKPOINT, look) is away


@pytest.mark.parametrize(
    "said",
    [
        "java.lang.ArithmeticException: / by zero",
        "org.apache.hadoop.fs.ChecksumException: Checksum error: file:/data/in/1.csv at 0",
        "java.io.FileNotFoundException: File file:/data/in/1.csv does not exist",
        "java.net.ConnectException: Connection refused",
        "org.rocksdb.RocksDBException: While open a file for appending: No space left on device",
    ],
)
def test_other_failures_are_no_damage(said: str) -> None:
    found = suspicion_of([said])
    assert found is None or not found.certain
