"""The order in which a keyed operator of a batch gets its elements: by their times.

Where all input is there, nothing has to be late.  Flink counterpart: ``MultiInputSortingDataInput``, which
sorts the elements of all keyed inputs by key and time and reads broadcast inputs before them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise

from yarnflow.operators.elements import MIN_WATERMARK_MS, Chunk
from yarnflow.operators.task.node import Node
from yarnflow.operators.task.outputs import MAX_WAITING_ELEMENTS

#: operator, number of the input, elements
NodeInput = tuple[Node, int, Chunk]


def in_time_order(inputs: Iterable[NodeInput]) -> Iterator[NodeInput]:
    """What one group gets in a batch: each keyed operator's elements by time, first those without a time.

    Elements of the same time stay in their order, and so does all that goes to operators without keys.
    """
    of_node: dict[int, list[NodeInput]] = {}
    for found in inputs:
        of_node.setdefault(found[0].plan.node_id, []).append(found)
    for waiting in of_node.values():
        node = waiting[0][0]
        broadcast = node.plan.broadcast_inputs
        yield from (found for found in waiting if found[1] in broadcast)
        others = [found for found in waiting if found[1] not in broadcast]
        yield from _sorted(node, others) if node.plan.keyed else others


def _sorted(node: Node, inputs: list[NodeInput]) -> Iterator[NodeInput]:
    times = [time_ms for _, _, chunk in inputs for time_ms in _times(chunk)]
    if all(before <= behind for before, behind in pairwise(times)):
        yield from inputs
        return
    indexes = [index for _, index, chunk in inputs for _ in chunk.values]
    values = [value for _, _, chunk in inputs for value in chunk.values]
    stamps = [stamp for _, _, chunk in inputs for stamp in chunk.timestamps or [None] * len(chunk.values)]
    keys = [key for _, _, chunk in inputs for key in chunk.keys or ()]
    order = sorted(range(len(times)), key=times.__getitem__)
    for index, found in groupby(order, key=indexes.__getitem__):
        places = list(found)
        for start in range(0, len(places), MAX_WAITING_ELEMENTS):
            piece = places[start : start + MAX_WAITING_ELEMENTS]
            yield node, index, Chunk(
                [values[place] for place in piece],
                [stamps[place] for place in piece],
                [keys[place] for place in piece] if keys else None,
            )


def _times(chunk: Chunk) -> list[int]:
    if chunk.timestamps is None:
        return [MIN_WATERMARK_MS] * len(chunk.values)
    return [MIN_WATERMARK_MS if time_ms is None else time_ms for time_ms in chunk.timestamps]
