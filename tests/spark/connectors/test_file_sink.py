"""Which driver may write to a file sink; without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.checkpoints.local_files import LocalFiles
from yarnflow.errors import StateDamaged
from yarnflow.graph.connectors.sinks import FileSink
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.spark.connectors import file_sink
from yarnflow.spark.connectors.file_sink import STAGING, FileWriter

#: Spark is not asked
NO_SPARK: Any = None


def test_a_damaged_owner_is_one_error_that_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_sink, "HadoopFiles", lambda spark: LocalFiles())
    earlier = tmp_path / STAGING / "id.1"
    earlier.mkdir(parents=True)
    writer = FileWriter(NO_SPARK, FileSink(str(tmp_path), "json"), "id", run=RunToken("job", 1, 1))
    (earlier / "owner").write_text('{"epoch":')
    with pytest.raises(StateDamaged, match="id.1/owner is damaged.*empty it if no other driver") as raised:
        writer._take_over()
    assert not raised.value.retryable
    (earlier / "owner").write_text("")
    writer._take_over()
    assert not earlier.exists()
