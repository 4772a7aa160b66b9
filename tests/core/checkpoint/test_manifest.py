"""The manifest: what is written is read, and what could harm is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnflow.core.checkpoint.manifest import (
    FORMAT_VERSION,
    SavepointFile,
    SavepointMetadata,
    checkpoint_id_of,
    checkpoint_name,
    from_bytes,
    savepoint_name,
    to_bytes,
)
from yarnflow.core.checkpoint.messages import (
    CheckpointKind,
    QueryPosition,
    SourceProgress,
    StateOperatorProgress,
)
from yarnflow.core.checkpoint.program_shape import (
    FieldShape,
    OperatorShape,
    ProgramShape,
    QueryShape,
    SourceShape,
)
from yarnflow.core.ids import JobId
from yarnflow.errors import SavepointInvalid

WHERE = "hdfs:///s/_metadata"
METADATA = SavepointMetadata(
    checkpoint_id=12,
    kind=CheckpointKind.SAVEPOINT,
    job_id=JobId("a" * 32),
    job_name="flügel",
    job_key="k",
    created_ms=1_700_000_000_000,
    yarnflow_version="0.1.0",
    program=ProgramShape(
        "GRAPH",
        "beef",
        4,
        (
            QueryShape(
                "sum",
                "Sum",
                "sum",
                "job.py:3",
                (SourceShape("aa", "Files", "file", location="/in"),),
                (OperatorShape("bb", "Sum", "reduce", key=("a AS a",), key_schema=(FieldShape("a"),)),),
            ),
        ),
    ),
    positions=(
        QueryPosition(
            "sum", 7, "/job/query-sum", 5, -1, (SourceProgress("s", "{}"),), (StateOperatorProgress("x"),)
        ),
    ),
    files=(SavepointFile("query-sum/offsets/7", 120, "sha256:00ff"),),
)


def refused(content: bytes) -> str:
    with pytest.raises(SavepointInvalid) as caught:
        from_bytes(content, WHERE)
    assert WHERE in caught.value.message and "\n" not in caught.value.message
    return caught.value.message


def changed(**fields: object) -> bytes:
    return json.dumps({**json.loads(to_bytes(METADATA)), **fields}).encode()


def test_round_trip() -> None:
    assert from_bytes(to_bytes(METADATA), WHERE) == METADATA
    assert METADATA.total_bytes == 120


@given(
    st.integers(0, 2**62),
    st.text(),
    st.lists(st.from_regex(r"[a-z0-9.]*[a-z0-9][a-z0-9.]*", fullmatch=True), unique=True),
)
def test_round_trip_of_any(length: int, name: str, paths: list[str]) -> None:
    files = tuple(SavepointFile(f"query-q/{path}", length) for path in paths)
    metadata = replace(METADATA, job_name=name, files=files)
    assert from_bytes(to_bytes(metadata), WHERE) == metadata


def test_what_a_newer_one_adds_is_ignored() -> None:
    assert from_bytes(changed(colour="red"), WHERE) == METADATA


def test_a_newer_format_is_refused_whatever_else_is_in_it() -> None:
    text = refused(json.dumps({"format_version": FORMAT_VERSION + 1}).encode())
    assert f"format version {FORMAT_VERSION + 1}" in text and "newer" in text


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"[]", b"{}", b'{"format_version": true}', b"[" * 100_000]
)
def test_what_is_no_manifest_is_refused(content: bytes) -> None:
    assert "no manifest" in refused(content)


def test_a_damaged_field_is_named() -> None:
    assert "job_id" in refused(changed(job_id=3))


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "", "a//b", "a/./b", "..", "a\\b", "a\0b"])
def test_no_path_leads_out_of_the_savepoint(path: str) -> None:
    assert "not a path inside" in refused(changed(files=[{"path": path, "length": 1}]))


@pytest.mark.parametrize(
    "files",
    [
        [{"path": "a", "length": 1}, {"path": "a", "length": 1}],
        [{"path": "_metadata", "length": 1}],
        [{"path": "a", "length": -1}],
        [{"path": "a", "length": 1, "checksum": "00ff"}],
    ],
)
def test_a_file_list_that_cannot_be_is_refused(files: list[dict[str, object]]) -> None:
    assert "damaged" in refused(changed(files=files))


def test_names() -> None:
    assert savepoint_name("abcdef" + "0" * 26, "0123456789ab") == "savepoint-abcdef-0123456789ab"
    with pytest.raises(ValueError, match="12 hex digits"):
        savepoint_name("abcdef", "../456789abcd")
    assert checkpoint_id_of(checkpoint_name(17)) == 17
    assert checkpoint_id_of("chk-") is checkpoint_id_of("chk-017") is checkpoint_id_of("xchk-1") is None
