"""What flows between the operators of one task: chunks of elements, and watermarks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Protocol

#: before any watermark; Flink: ``Long.MIN_VALUE``
MIN_WATERMARK_MS: Final = -(2**63)
#: no element will follow; Flink: ``Watermark.MAX_WATERMARK``
MAX_WATERMARK_MS: Final = 2**63 - 1


@dataclass(slots=True)
class Chunk:
    """Elements in the order of their arrival, as lists of one length.

    Operators hand chunks on, so a chunk is not changed after it was emitted.
    """

    values: list[Any]
    #: event time in ms since the epoch of each element; None: no element has one
    timestamps: list[int | None] | None = None
    #: key of each element; only at the input of a keyed operator
    keys: list[Any] | None = None


@dataclass(slots=True)
class SourceChunk(Chunk):
    """What a source read, with what goes to its side outputs."""

    #: id of the tag → elements
    sides: dict[str, Chunk] = field(default_factory=dict)
    #: messages that could not be read, or not all of them; they are not counted where they fail the job
    errors: int = 0


class Output(Protocol):
    """Where an operator puts what it makes."""

    def emit(self, chunk: Chunk) -> None:
        """Hand elements to the operators behind this one."""

    def emit_side(self, tag_id: str, chunk: Chunk) -> None:
        """Hand elements to the side output of this tag.  Flink: ``OutputTag``."""
