"""How a watermark strategy becomes operators."""

from __future__ import annotations

from typing import Any

from yarnflow.api.building import definitions, elements
from yarnflow.api.common.watermark_strategy import WatermarkStrategy
from yarnflow.api.origin import definition_origin
from yarnflow.errors import GraphError
from yarnflow.graph.operators import ElementKind, PythonKind
from yarnflow.graph.schema import Schema
from yarnflow.graph.stream_graph import Definition
from yarnflow.operators.functions.base import positional_arity
from yarnflow.operators.functions.elements import TimestampAssigner
from yarnflow.operators.process.adapters import TimeOfValue
from yarnflow.operators.process.watermarks import TimestampsAndWatermarksDefinition


def timestamp_definitions(
    strategy: WatermarkStrategy, call: str, origin: str, schema: Schema
) -> list[tuple[str, Definition]]:
    """The operators that give the elements of a stream their time, each with its name.

    Parameters
    ----------
    schema : Schema
        Of the stream: on columns event time is a column, on elements it travels beside them.

    Raises
    ------
    GraphError
        The strategy says no time, and the stream's elements have none.
    """
    assigner, late_ms = strategy.timestamp_assigner, strategy.out_of_orderness_ms
    idle_ms = strategy.idle_timeout_ms
    if late_ms is None and (isinstance(assigner, str) or (assigner is None and schema.element_type is None)):
        return []
    if isinstance(assigner, str) and late_ms is not None:
        return [("Timestamps/Watermarks", definitions.assign_timestamps(assigner, late_ms, idle_ms))]
    if schema.element_type is not None or late_ms is None:
        return [("Timestamps/Watermarks", _of_elements(strategy, origin))]
    if assigner is None:
        raise GraphError(
            f"{origin}: {call}(): the sources of Spark give records no event time; "
            "add .with_timestamp_assigner('field') to the strategy"
        )
    function = definitions.timestamp_function(assigner)
    return [
        (
            "Timestamps",
            definitions.python(PythonKind.TIMESTAMP, function, definition_origin(assigner, origin)),
        ),
        ("Timestamps/Watermarks", definitions.assign_timestamps("", late_ms, idle_ms)),
    ]


def _of_elements(strategy: WatermarkStrategy, origin: str) -> Definition:
    assigner: Any = strategy.timestamp_assigner
    if callable(assigner) and not isinstance(assigner, TimestampAssigner) and positional_arity(assigner) == 1:
        assigner = TimeOfValue(assigner)
    definition = TimestampsAndWatermarksDefinition(
        assigner, strategy.out_of_orderness_ms, strategy.idle_timeout_ms
    )
    return elements.element_operator(
        ElementKind.TIMESTAMPS,
        definition,
        strategy.timestamp_assigner,
        origin,
        elements.same_output,
        # the latest time so far
        name="" if assigner is not None else "the elements' own time",
        idle_after_ms=strategy.idle_timeout_ms,
    )
