"""Numbers one after the other.  PyFlink: ``pyflink.datastream.connectors.number_seq``."""

from __future__ import annotations

from yarnflow.api.datastream.connectors.base import Source
from yarnflow.api.origin import call_origin
from yarnflow.errors import GraphError
from yarnflow.graph import operators
from yarnflow.graph.schema import VALUE_FIELD, Field, Schema


class NumberSequenceSource(Source):
    """The whole numbers from ``start`` to ``end``, both included; a bounded stream of them."""

    name = "Number Sequence"

    def __init__(self, start: int, end: int) -> None:
        if start > end:
            raise GraphError(f"{call_origin()}: NumberSequenceSource(): {start} is behind the end {end}")
        self._start = start
        self._end = end

    def operator(self) -> tuple[operators.Operator, Schema]:
        schema = Schema((Field(VALUE_FIELD, "bigint"),), scalar=True)
        return operators.SequenceSource(self._start, self._end), schema
