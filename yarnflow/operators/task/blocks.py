"""Blocks: many elements for one key group and one edge, as they travel between levels."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from yarnflow.operators.elements import Chunk

PICKLE_PROTOCOL: Final = 5


@dataclass(frozen=True, slots=True)
class Block:
    """One row between two levels.

    Attributes
    ----------
    edge : str
        Names the exchange, and so the operator and input that are to get the elements.
    group : int
        Key group, or subtask of an operator that is not keyed.
    sender : int
        Group of the level before, or number of the source's split, that made the block.
    sequence : int
        Rises over the blocks of one sender and batch, whatever their edge and group.
    count : int
        Number of elements.
    payload : bytes
        The elements, as :func:`encode` made them.
    """

    edge: str
    group: int
    sender: int
    sequence: int
    count: int
    payload: bytes


class ChunkEncoder:
    """Makes bytes of chunks.

    Parameters
    ----------
    dumps_by_value : callable, optional
        ``f(object) -> bytes``, readable by ``pickle.loads``, for elements whose classes other
        processes cannot import; used once pickle has failed.
    """

    def __init__(self, dumps_by_value: Callable[[Any], bytes] | None = None) -> None:
        self._dumps_by_value = dumps_by_value
        self._by_value = False

    def encode(self, chunk: Chunk) -> bytes:
        """The chunk with times and keys.  What pickle raises is raised if there is no other way."""
        parts = (chunk.values, chunk.timestamps, chunk.keys)
        if not self._by_value:
            try:
                return pickle.dumps(parts, PICKLE_PROTOCOL)
            except Exception:  # PicklingError, AttributeError, TypeError: it depends on the class
                if self._dumps_by_value is None:
                    raise
                # the classes stay what they are, so the next chunk would fail as well
                self._by_value = True
        assert self._dumps_by_value is not None
        return self._dumps_by_value(parts)


def decode(payload: bytes) -> Chunk:
    """The chunk of some bytes; only for bytes that this job wrote."""
    return Chunk(*pickle.loads(payload))
