"""A savepoint to start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.checkpoints.restoring.states import QUERY_FILES, Savepoint, without_a_jvm


@pytest.fixture
def savepoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    without_a_jvm(monkeypatch)
    directory = tmp_path / "savepoint"
    Savepoint(directory).write(QUERY_FILES)
    return directory
