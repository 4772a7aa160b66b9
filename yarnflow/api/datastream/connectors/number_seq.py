"""Numbers one after the other.  PyFlink: ``pyflink.datastream.connectors.number_seq``."""

from __future__ import annotations

from yarnflow.api.datastream.connectors.base import Source
from yarnflow.graph import operators
from yarnflow.graph.schema import VALUE_FIELD, Field, Schema


class NumberSequenceSource(Source):
    """The whole numbers from ``start`` to ``end``, both included; a bounded stream of them."""

    name = "Number Sequence"

    def __init__(self, start: int, end: int) -> None:
        self._start = start
        self._end = end

    def operator(self) -> tuple[operators.Operator, Schema]:
        query = f"SELECT id AS {VALUE_FIELD} FROM range({self._start}, {self._end + 1})"
        return operators.SqlOperator(query), Schema((Field(VALUE_FIELD, "bigint"),), scalar=True)
