"""Savepoints and retained checkpoints of one query without state, and restores from them; without Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.spark.checkpoints.local_files import LocalFiles
from yarnflow.core.checkpoint.manifest import METADATA_FILE, SavepointFile, SavepointMetadata, to_bytes
from yarnflow.core.checkpoint.messages import (
    CheckpointKind,
    ClaimMode,
    QueryPosition,
    RestoredState,
    RestoreSettings,
)
from yarnflow.core.checkpoint.program_shape import ProgramShape
from yarnflow.core.ids import JobId
from yarnflow.operators.task.state_layout import LastSource, StateLayout
from yarnflow.spark.checkpoints.file_copy import CopiedFile
from yarnflow.spark.checkpoints.restoring import bringing
from yarnflow.spark.checkpoints.restoring import restore as restoring

SHAPE = ProgramShape("GRAPH", "of-operators-and-edges")
LAYOUT = StateLayout((("a",),), ((),), LastSource.OF_PROGRAM)
#: of a query that was planned and committed once
QUERY_FILES = {
    "query-elements/offsets/0": 'v1\n{"conf":{}}\n-',
    "query-elements/commits/0": "v1\n{}",
    "query-elements/metadata": '{"id":"a"}',
}
#: Spark is not asked
NO_SPARK: Any = None


@dataclass
class Savepoint:
    """Of one query without state."""

    directory: Path

    def write(self, files: Mapping[str, str]) -> None:
        for path, content in files.items():
            (self.directory / path).parent.mkdir(parents=True, exist_ok=True)
            (self.directory / path).write_text(content)
        manifest = SavepointMetadata(
            1, CheckpointKind.SAVEPOINT, JobId("0" * 32), "", "", 0, "", SHAPE,
            (QueryPosition("elements", 0, "/before/query-elements"),),
            tuple(SavepointFile(path, len(content)) for path, content in files.items()),
        )  # fmt: skip
        (self.directory / METADATA_FILE).write_bytes(to_bytes(manifest))


def copied(
    files: object, paths: Mapping[str, str], check: Callable[[], None]
) -> dict[str, CopiedFile]:
    check()
    found = {}
    for source, target in paths.items():
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        found[source] = CopiedFile(Path(target).stat().st_size, "")
    return found


def without_a_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restores are of files of this machine."""
    monkeypatch.setattr(restoring, "HadoopFiles", lambda spark: LocalFiles())
    monkeypatch.setattr(bringing, "copy_files", copied)


def checkpoint(job: Path, files: Mapping[str, str]) -> Path:
    """The first one of a job, which has ended, with one query."""
    for path, content in files.items():
        (job / path).parent.mkdir(parents=True, exist_ok=True)
        (job / path).write_text(content)
    manifest = SavepointMetadata(
        1, CheckpointKind.CHECKPOINT, JobId("0" * 32), "", "", 0, "", SHAPE,
        (QueryPosition("elements", 0, f"{job}/query-elements"),), (),
    )  # fmt: skip
    (job / "chk-1").mkdir()
    (job / "chk-1" / METADATA_FILE).write_bytes(to_bytes(manifest))
    return job / "chk-1"


def retained(job: Path, files: Mapping[str, str] = QUERY_FILES) -> Path:
    """A checkpoint of a job's one query."""
    Savepoint(job).write(files)
    manifest = SavepointMetadata(
        3, CheckpointKind.CHECKPOINT, JobId("0" * 32), "", "", 0, "", replace(SHAPE, partitions=2),
        (QueryPosition("elements", 0, str(job / "query-elements")),),
    )  # fmt: skip
    (job / "chk-3").mkdir()
    (job / "chk-3" / METADATA_FILE).write_bytes(to_bytes(manifest))
    return job / "chk-3"


def restore(
    savepoint: Path, job: Path, fence: Callable[[], None], claim: bool = False
) -> RestoredState | None:
    settings = RestoreSettings(str(savepoint), ClaimMode.CLAIM if claim else ClaimMode.NO_CLAIM)
    return restoring.restore(NO_SPARK, settings, str(job), None, trusted=True, fence=fence)
