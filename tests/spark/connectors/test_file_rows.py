"""Lines in other charsets, and names of directories."""

from __future__ import annotations

import pyarrow as pa
import pytest

from yarnflow.errors import InvalidExpression
from yarnflow.spark.connectors.file_rows import _Decode, _Encode, bucket_directory


@pytest.mark.parametrize(
    ("staged", "directory"),
    [
        ("__bucket=2026-11-23--17", "2026-11-23--17"),
        ("__bucket=a%2Fb", "a/b"),
        # what a file system cannot have in names stays escaped
        ("__bucket=12%3A30", "12%3A30"),
        ("__bucket=null", "null"),
    ],
)
def test_directories_of_buckets(staged: str, directory: str) -> None:
    assert bucket_directory(staged) == directory


@pytest.mark.parametrize("value", ["..", "a%2F..%2Fb", ".hidden", "a%2F%2Fb", "%2Fa", "."])
def test_directories_that_lead_elsewhere(value: str) -> None:
    with pytest.raises(InvalidExpression, match="which is no name of a directory"):
        bucket_directory(f"__bucket={value}")


def test_lines_of_a_charset() -> None:
    raw = pa.record_batch([pa.array([b"na\xefve", b"\x80"], pa.binary())], names=["value"])
    (texts,) = _Decode("cp1252")([raw])
    assert texts.column("value").to_pylist() == ["naïve", "€"]
    buckets = pa.array(["x", "y"])
    (lines,) = _Encode("latin-1")([pa.record_batch([texts.column(0), buckets], names=["value", "__bucket"])])
    assert lines.column("value").to_pylist() == [b"na\xefve", b"?"]
    assert lines.column("__bucket").to_pylist() == ["x", "y"]
