"""Options of file sources."""

from __future__ import annotations

import pytest

from yarnflow.graph.operators import FileSource
from yarnflow.graph.schema import Schema
from yarnflow.spark.connectors.sources import _strict


@pytest.mark.parametrize(
    ("file_format", "options", "mode"),
    [
        ("csv", {}, "FAILFAST"),
        ("json", {"multiLine": "true"}, "FAILFAST"),
        ("csv", {"Mode": "PERMISSIVE"}, None),
        ("parquet", {}, None),
    ],
)
def test_records_that_do_not_fit_fail_unless_asked_otherwise(
    file_format: str, options: dict[str, str], mode: str | None
) -> None:
    found = _strict(FileSource("/data", file_format, Schema(()), options))
    assert found.get("mode") == mode
    assert options.items() <= found.items()
