"""A savepoint's manifest as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from yarnflow.cli.checkpoints import size_text
from yarnflow.cli.output import plain_values
from yarnflow.core.checkpoint.messages import QueryPosition
from yarnflow.core.checkpoint.program_shape import FieldShape, OperatorShape, QueryShape, SourceShape
from yarnflow.core.messages import ProgramKind
from yarnflow.fs.saved_state import SavedState

_KINDS: Final = {ProgramKind.GRAPH.value: "DataStream program", ProgramKind.SCRIPT.value: "PySpark script"}


def manifest_json(state: SavedState) -> dict[str, Any]:
    """Everything the manifest says, with where it was read."""
    plain: dict[str, Any] = plain_values(asdict(state.metadata))
    return {"path": state.uri, "total_bytes": state.metadata.total_bytes, **plain}


def manifest_text(state: SavedState) -> str:
    """For people."""
    metadata = state.metadata
    program = metadata.program
    partitions = f", state in {program.partitions} partitions" if program.partitions else ""
    key = f", key {metadata.job_key}" if metadata.job_key else ""
    lines = [
        f"{state.what.capitalize()} {metadata.checkpoint_id}: {state.uri}",
        f"  job      {metadata.job_name} ({metadata.job_id}{key})",
        f"  taken    {_time(metadata.created_ms)} by yarnflow {metadata.yarnflow_version}",
        f"  program  {_KINDS.get(program.kind, program.kind)}{partitions}",
    ]
    if metadata.files:
        lines.append(f"  files    {len(metadata.files):,}, {size_text(metadata.total_bytes)}")
    shapes = {query.name: query for query in program.queries}
    for position in metadata.positions:
        lines += _query(position, shapes.get(position.query))
    return "\n".join(lines)


def _query(position: QueryPosition, shape: QueryShape | None) -> Iterator[str]:
    yield f"Query {position.query}" + (f", {_named(shape.operator, shape.uid)}" if shape else "")
    if position.batch_id < 0:
        yield "  position nothing was committed yet"
    else:
        watermark = f", watermark {_time(position.watermark_ms)}" if position.watermark_ms >= 0 else ""
        yield f"  position batch {position.batch_id}, committed {_time(position.committed_ms)}{watermark}"
    shapes = shape.sources if shape else ()
    for number, source in enumerate(position.sources):
        known = shapes[number] if len(shapes) == len(position.sources) else None
        name = _source(known) if known else source.description
        yield f"  source   {name}: offset {source.end_offset or '-'}"
    operators = shape.operators if shape else ()
    for operator in operators:
        yield f"  operator {_operator(operator)}"
    for number, progress in enumerate(position.operators):
        rows = f"{progress.rows:,} rows, {size_text(progress.bytes)}, {progress.partitions} partitions"
        yield f"  state {number:<2} {progress.name}: {rows}"


def _source(shape: SourceShape) -> str:
    where = f" {shape.location}" if shape.location else ""
    return f"{_named(shape.name, shape.uid)}, {shape.kind}{where}"


def _operator(shape: OperatorShape) -> str:
    parts = [f"{_named(shape.name, shape.uid)}, {shape.kind}"]
    if shape.window:
        parts.append(f"window {shape.window}")
    if shape.key:
        parts.append(f"key {', '.join(shape.key)}")
    if shape.value_schema:
        parts.append(f"state {', '.join(map(_field, shape.value_schema))}")
    return "; ".join(parts)


def _named(name: str, uid: str) -> str:
    return f"'{name}' (uid {uid})" if uid else f"'{name}' (no uid)"


def _field(field: FieldShape) -> str:
    return f"{field.name} {field.type}".rstrip()


def _time(at_ms: int) -> str:
    if at_ms < 0:
        return "-"
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError):
        return "end of input"
