"""Pickled lists of elements as rows, on their way to the driver."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from yarnflow.graph.schema import Schema
from yarnflow.operators.types.collected import PAYLOAD_ELEMENTS, payloads
from yarnflow.spark.translate.arrow_values import records

PAYLOAD_DDL: Final = "payload binary, elements int"
_ARROW: Final = pa.schema([("payload", pa.binary()), ("elements", pa.int32())])


def payload_batches(
    blocks: Iterable[list[Any]], dumps: Callable[[Any], bytes]
) -> Iterator[pa.RecordBatch]:
    """Elements of one partition, that come in blocks of any size, as pickled lists of limited size."""
    held: list[Any] = []
    for block in blocks:
        held.extend(block)
        if len(held) >= PAYLOAD_ELEMENTS:
            yield from _batches(held, dumps)
            held = []
    yield from _batches(held, dumps)


def _batches(values: list[Any], dumps: Callable[[Any], bytes]) -> Iterator[pa.RecordBatch]:
    for payload, elements in payloads(values, dumps):
        arrays = [pa.array([payload], pa.binary()), pa.array([elements], pa.int32())]
        yield pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


class CollectedRecords:
    """From columns to pickled lists of the records that functions would get, for ``mapInArrow``."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return payload_batches((list(records(batch, self._schema)) for batch in batches), pickle.dumps)
