"""Event-time windows on Spark's native window aggregation.

Decides where the watermark is defined (right before the window: a ``mapInArrow`` in between
would lose it) and how the end of bounded input fires the last windows: a *sentinel* row far in
the future is unioned in just before the watermark, and read only after all input was.  Its own
window never closes, so it is never emitted.  Flink counterparts: ``WindowOperator`` and
``Watermark.MAX_WATERMARK`` at the end of input.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from yarnflow.errors import UnsupportedGraph
from yarnflow.graph.job_graph import StreamNode
from yarnflow.graph.operators import Key, Window, WindowAggregate, WindowKind, WindowProcess
from yarnflow.graph.schema import EVENT_TIME_FIELD
from yarnflow.spark.translate.python_chain import ELEMENTS, WINDOW_END, WINDOW_START
from yarnflow.spark.translate.schemas import quoted, visible_columns

#: event time of the sentinel, as a SQL literal
SENTINEL_TIME: Final = "TIMESTAMP'9999-01-01 00:00:00Z'"
#: the same instant
END_OF_TIME_MS: Final = 253_370_764_800_000
_WINDOW: Final = "__window"
#: where Spark notes that a column has a watermark
WATERMARK_METADATA: Final = "spark.watermarkDelayMs"

#: unions the sentinel source of a windowed node to its input
WithSentinel = Callable[[DataFrame], DataFrame]


def key_columns(key: Key) -> list[Column]:
    """The key's expressions under their output names."""
    return [
        F.expr(expression).alias(name) for expression, name in zip(key.expressions, key.names, strict=True)
    ]


def with_watermark(
    node: StreamNode, frame: DataFrame, delay_ms: int, with_sentinel: WithSentinel
) -> DataFrame:
    """The window's input with a watermark on its event time.

    Raises
    ------
    UnsupportedGraph
        The stream has no event time, or lost its watermark behind an earlier window.
    """
    if EVENT_TIME_FIELD not in frame.columns:
        raise UnsupportedGraph(
            f"'{node.name}' ({node.origin}) needs event time; "
            "call assign_timestamps_and_watermarks() before it"
        )
    if not frame.isStreaming or WATERMARK_METADATA in frame.schema[EVENT_TIME_FIELD].metadata:
        return frame
    return with_sentinel(frame).withWatermark(EVENT_TIME_FIELD, f"{delay_ms} milliseconds")


def _window_column(window: Window) -> Column:
    if window.kind is WindowKind.SESSION:
        return F.session_window(EVENT_TIME_FIELD, f"{window.gap_ms} milliseconds").alias(_WINDOW)
    slide_ms = window.slide_ms if window.kind is WindowKind.SLIDING else window.size_ms
    return F.window(
        EVENT_TIME_FIELD,
        f"{window.size_ms} milliseconds",
        f"{slide_ms} milliseconds",
        f"{window.offset_ms} milliseconds",
    ).alias(_WINDOW)


def _grouped_by(node: StreamNode, key: Key, window: Window) -> list[Column]:
    if not key.expressions and window.kind is WindowKind.SESSION:
        raise UnsupportedGraph(
            f"'{node.name}' ({node.origin}): session windows over all records "
            "do not exist on Spark; key the stream"
        )
    return [*key_columns(key), _window_column(window)]


def aggregated(node: StreamNode, operator: WindowAggregate, frame: DataFrame) -> DataFrame:
    """Built-in aggregates per key and window.

    The event time of a result is the last instant of its window, with the watermark kept, so
    that another window may follow.
    """
    aggregates = [F.expr(text) for text in operator.aggregates]
    result = frame.groupBy(*_grouped_by(node, operator.key, operator.window)).agg(*aggregates)
    names = [n for n in result.columns if n not in operator.key.names and n != _WINDOW]
    return result.select(
        *[F.col(quoted(name)) for name in operator.key.names],
        F.col(f"{_WINDOW}.start").alias("window_start"),
        F.col(f"{_WINDOW}.end").alias("window_end"),
        *[F.col(quoted(name)) for name in names],
        F.window_time(_WINDOW).alias(EVENT_TIME_FIELD),
    )


def collected(
    node: StreamNode, operator: WindowProcess, frame: DataFrame
) -> tuple[DataFrame, tuple[str, ...]]:
    """One row per key and window with all its records, for a Python window function.

    Returns
    -------
    tuple
        The frame, and the names of its key columns.
    """
    fields = [*visible_columns(frame), EVENT_TIME_FIELD]
    elements = F.collect_list(F.struct(*[F.col(quoted(name)) for name in fields])).alias(ELEMENTS)
    # key columns may be called like anything, so they get names of their own while in Python
    keys = [
        F.col(quoted(name)).alias(f"__key_{position}") for position, name in enumerate(operator.key.names)
    ]
    result = frame.groupBy(*_grouped_by(node, operator.key, operator.window)).agg(elements)
    frame = result.select(
        *keys,
        F.col(f"{_WINDOW}.start").alias(WINDOW_START),
        F.col(f"{_WINDOW}.end").alias(WINDOW_END),
        ELEMENTS,
    )
    return frame, tuple(f"__key_{position}" for position in range(len(keys)))
