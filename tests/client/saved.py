"""Savepoints and retained checkpoints as files, made by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from yarnflow.core.checkpoint.manifest import METADATA_FILE, SavepointFile, SavepointMetadata, to_bytes
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

JOB = JobId("ab" * 16)

PROGRAM = ProgramShape(
    kind="GRAPH",
    graph_hash="1" * 32,
    partitions=4,
    queries=(
        QueryShape(
            name="counts",
            operator="count",
            uid="counts",
            sources=(SourceShape("a" * 32, "flights", "file", uid="flights", location="/in"),),
            operators=(
                OperatorShape(
                    "b" * 32,
                    "count",
                    "window aggregate",
                    uid="counts",
                    key=("carrier AS carrier",),
                    value_schema=(FieldShape("n", "BIGINT"),),
                    window="tumbling, size 10000 ms",
                ),
            ),
        ),
    ),
)


def position(directory: str = "", batch_id: int = 12) -> QueryPosition:
    return QueryPosition(
        "counts",
        batch_id,
        directory,
        committed_ms=1_700_000_000_000,
        watermark_ms=1_600_000_000_000,
        sources=(SourceProgress("FileStreamSource[file:/in]", end_offset='{"logOffset":5}'),),
        operators=(StateOperatorProgress("stateStoreSave", rows=1234, bytes=2048, partitions=4),),
    )


_FILES: Final[Mapping[str, bytes]] = {"query-counts/metadata": b"{}", "query-counts/commits/12": b"v1\n{}"}


def savepoint(
    parent: Path,
    name: str = "savepoint-ababab-0123456789ab",
    created_ms: int = 5_000,
    files: Mapping[str, bytes] = _FILES,
) -> Path:
    """A complete one, with two files if nothing else is said."""
    root = parent / name
    root.mkdir(exist_ok=True)
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    metadata = SavepointMetadata(
        checkpoint_id=7,
        kind=CheckpointKind.SAVEPOINT,
        job_id=JOB,
        job_name="flights",
        job_key="flights",
        created_ms=created_ms,
        yarnflow_version="0.1",
        program=PROGRAM,
        positions=(position("hdfs://elsewhere/job/query-counts"),),
        files=tuple(SavepointFile(path, len(content)) for path, content in files.items()),
    )
    (root / METADATA_FILE).write_bytes(to_bytes(metadata))
    return root


def retained(root: Path, *numbers: int) -> Path:
    """A job's directory with checkpoints."""
    job = root / JOB
    (job / "query-counts" / "commits").mkdir(parents=True)
    (job / "query-counts" / "commits" / "12").write_bytes(b"v1\n{}")
    (job / "sinks" / "counts").mkdir(parents=True)
    (job / "sinks" / "counts" / "layout.json").write_bytes(b"{}")
    (job / "restored.json").write_bytes(b"{}")
    for number in numbers:
        directory = job / f"chk-{number}"
        directory.mkdir()
        metadata = SavepointMetadata(
            checkpoint_id=number,
            kind=CheckpointKind.CHECKPOINT,
            job_id=JOB,
            job_name="flights",
            job_key="flights",
            created_ms=5_000,
            yarnflow_version="0.1",
            program=PROGRAM,
            positions=(position(f"file://{job}/query-counts"),),
        )
        (directory / METADATA_FILE).write_bytes(to_bytes(metadata))
    return job
