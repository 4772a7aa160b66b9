"""What Spark's reports of a streaming query mean."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from yarnflow.core.checkpoint.messages import SourceProgress, StateOperatorProgress
from yarnflow.core.messages import QueryProgress

#: an offset over thousands of partitions does not go into a report every second
_MAX_OFFSET_CHARACTERS: Final = 16384


def parse_progress(event: Mapping[str, Any], name: str, output_rows: int = -1) -> QueryProgress:
    """Spark's ``StreamingQueryProgress`` JSON → our value, without totals.

    Parameters
    ----------
    event : mapping
        The parsed JSON; absent and NaN-like entries count as 0.
    name : str
        The query's name.
    output_rows : int
        What the sinks counted themselves; used when Spark's own number is -1.
    """
    durations = event.get("durationMs") or {}
    operators = parse_operators(event)
    spark_rows = int((event.get("sink") or {}).get("numOutputRows", -1))
    return QueryProgress(
        query=name,
        batch_id=int(event["batchId"]),
        at_ms=millis(event.get("timestamp", "")),
        batch_duration_ms=int(event.get("batchDuration", durations.get("triggerExecution", 0))),
        input_rows=int(event.get("numInputRows", 0)),
        output_rows=output_rows if spark_rows < 0 else spark_rows,
        input_rows_per_second=_number(event.get("inputRowsPerSecond")),
        processed_rows_per_second=_number(event.get("processedRowsPerSecond")),
        watermark_ms=_watermark((event.get("eventTime") or {}).get("watermark", "")),
        state_rows=sum(operator.rows for operator in operators),
        state_bytes=sum(operator.bytes for operator in operators),
        durations_ms={part: int(duration) for part, duration in durations.items()},
        sources=parse_sources(event),
        operators=operators,
    )


def parse_sources(event: Mapping[str, Any]) -> tuple[SourceProgress, ...]:
    """Sources of a progress event, in the order of Spark's offset log."""
    return tuple(
        SourceProgress(
            description=str(source.get("description", "")),
            start_offset=_offset(source.get("startOffset")),
            end_offset=_offset(source.get("endOffset")),
            latest_offset=_offset(source.get("latestOffset")),
            input_rows=int(source.get("numInputRows", 0)),
        )
        for source in event.get("sources") or ()
    )


def parse_operators(event: Mapping[str, Any]) -> tuple[StateOperatorProgress, ...]:
    """Stateful operators of a progress event."""
    return tuple(
        StateOperatorProgress(
            name=str(operator.get("operatorName", "")),
            rows=int(operator.get("numRowsTotal", 0)),
            bytes=int(operator.get("memoryUsedBytes", 0)),
            rows_updated=int(operator.get("numRowsUpdated", 0)),
            rows_removed=int(operator.get("numRowsRemoved", 0)),
            partitions=int(operator.get("numShufflePartitions", 0)),
        )
        for operator in event.get("stateOperators") or ()
    )


def _offset(value: Any) -> str:
    """JSON text; Spark embeds an offset that is JSON and quotes one that is not."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return text if len(text) <= _MAX_OFFSET_CHARACTERS else ""


def _number(value: Any) -> float:
    number = float(value) if isinstance(value, (int, float)) else 0.0
    return number if number == number and number not in (float("inf"), float("-inf")) else 0.0


def millis(text: str) -> int:
    """A time of Spark's (ISO 8601) in ms since the epoch; -1 = it is none."""
    try:
        return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)
    except ValueError:
        return -1


def _watermark(text: str) -> int:
    # Spark starts every watermark at the epoch, which means that there is none yet
    watermark_ms = millis(text)
    return watermark_ms if watermark_ms > 0 else -1
