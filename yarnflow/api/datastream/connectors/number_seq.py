"""Numbers one after the other.  PyFlink: ``pyflink.datastream.connectors.number_seq``."""

from __future__ import annotations

from typing import Final

from yarnflow.api.datastream.connectors.base import Source
from yarnflow.api.origin import call_origin
from yarnflow.errors import GraphError
from yarnflow.graph import operators
from yarnflow.graph.connectors import sources
from yarnflow.graph.schema import VALUE_FIELD, Field, Schema

#: they are written as ranges before the job begins; more ranges than these are too many for one file
_MAX_NUMBERS: Final = 10**10


class NumberSequenceSource(Source):
    """The whole numbers from ``start`` to ``end``, both included; a bounded stream of them.

    Both have 64 bits, and there are at most 10,000,000,000 numbers: they are divided before the job reads
    them. Flink's way to an endless stream, ``NumberSequenceSource(0, 2**63 - 1)``, is ``RateSource`` here.

    Raises
    ------
    GraphError
        There are none, or more, or a bound has more than 64 bits.
    """

    name = "Number Sequence"

    def __init__(self, start: int, end: int) -> None:
        if start > end:
            raise GraphError(f"{call_origin()}: NumberSequenceSource(): {start} is behind the end {end}")
        if start < -(2**63) or end >= 2**63:
            raise GraphError(
                f"{call_origin()}: NumberSequenceSource(): {start} to {end} are not numbers of 64 bits; they "
                "lie from -2**63 to 2**63 - 1"
            )
        if end - start >= _MAX_NUMBERS:
            raise GraphError(
                f"{call_origin()}: NumberSequenceSource(): {start} to {end} are more than {_MAX_NUMBERS:,} "
                "numbers; for a stream without an end use RateSource(rows_per_second)"
            )
        self._start = start
        self._end = end

    def operator(self) -> tuple[operators.Operator, Schema]:
        schema = Schema((Field(VALUE_FIELD, "bigint"),), scalar=True)
        return sources.SequenceSource(self._start, self._end), schema
