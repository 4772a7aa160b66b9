"""Calling functions that return any number of results, and emitting these."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

from yarnflow.operators.elements import Chunk, Output
from yarnflow.operators.functions.output_tag import OutputTag
from yarnflow.operators.process.contexts import ProcessContext
from yarnflow.operators.process.snapshots import extender
from yarnflow.operators.process.user_code import noted, or_wrong_shape
from yarnflow.operators.state.keyed import NO_KEY, KeyedState


def call_with_context(
    function: Callable[[Any, Any], Iterable[Any] | None],
    chunk: Chunk,
    context: ProcessContext,
    keyed: KeyedState,
    operator_name: str,
    fixed: bool,
) -> Chunk:
    """Results of ``function(value, context)`` for each element, with the element's time.

    Parameters
    ----------
    keyed : KeyedState
        Where the current key is set; keys are those of the chunk, :data:`NO_KEY` if it has none.
    fixed : bool
        Results are of types that cannot change; else they are taken as they are when they are emitted.
    """
    values, timestamps = chunk.values, chunk.timestamps
    keys = repeat(NO_KEY) if chunk.keys is None else chunk.keys
    results: list[Any] = []
    times: list[int | None] = []
    extend, value, found = extender(results, fixed), None, None
    try:
        if timestamps is None:
            context.timestamp_ms = None
            for value, keyed.current_key in zip(values, keys, strict=False):
                found = function(value, context)
                if found is not None:
                    extend(found)
        else:
            before = 0
            for value, keyed.current_key, time in zip(values, keys, timestamps, strict=False):
                context.timestamp_ms = time
                found = function(value, context)
                if found is not None:
                    extend(found)
                    after = len(results)
                    if after == before + 1:
                        times.append(time)
                    else:
                        times += [time] * (after - before)
                    before = after
    except Exception as error:
        raise noted(or_wrong_shape(error, found), operator_name, "element", value)
    keyed.current_key = NO_KEY
    return Chunk(results, None if timestamps is None else times)


def call_for_each(
    function: Callable[[Any], Iterable[Any] | None],
    chunk: Chunk,
    keyed: KeyedState,
    operator_name: str,
    fixed: bool,
) -> Chunk:
    """Results of ``function(value)`` for each element, with the element's time."""
    values, timestamps = chunk.values, chunk.timestamps
    keys = repeat(NO_KEY) if chunk.keys is None else chunk.keys
    results: list[Any] = []
    times: list[int | None] = []
    extend, value, found, before = extender(results, fixed), None, None, 0
    try:
        if timestamps is None:
            for value, keyed.current_key in zip(values, keys, strict=False):
                found = function(value)
                if found is not None:
                    extend(found)
        else:
            for value, keyed.current_key, time in zip(values, keys, timestamps, strict=False):
                found = function(value)
                if found is not None:
                    extend(found)
                    after = len(results)
                    times += [time] * (after - before)
                    before = after
    except Exception as error:
        raise noted(or_wrong_shape(error, found), operator_name, "element", value)
    keyed.current_key = NO_KEY
    return Chunk(results, None if timestamps is None else times)


def emit_results(chunk: Chunk, side_outputs: bool, output: Output) -> None:
    """Emit results; where the operator has side outputs, ``tag, value`` goes to that of the tag."""
    if not side_outputs:
        if chunk.values:
            output.emit(chunk)
        return
    times = repeat(None) if chunk.timestamps is None else chunk.timestamps
    timed = chunk.timestamps is not None
    main: list[Any] = []
    main_times: list[int | None] = []
    sides: dict[str, tuple[list[Any], list[int | None]]] = {}
    for result, time in zip(chunk.values, times, strict=False):
        if isinstance(result, tuple) and result and isinstance(result[0], OutputTag):
            tag_id = result[0].tag_id
            if tag_id not in sides:
                sides[tag_id] = ([], [])
            side_values, side_times = sides[tag_id]
            side_values.append(result[1])
            side_times.append(time)
        else:
            main.append(result)
            main_times.append(time)
    if main:
        output.emit(Chunk(main, main_times if timed else None))
    for tag_id, (side_values, side_times) in sides.items():
        output.emit_side(tag_id, Chunk(side_values, side_times if timed else None))
