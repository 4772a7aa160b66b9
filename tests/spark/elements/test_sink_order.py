"""What sinks make of blocks: in the order in which each sender sent them."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa

from yarnflow.graph.type_info import PICKLED
from yarnflow.operators.task.blocks import ELEMENTS, SINK_LEVEL, Block
from yarnflow.spark.elements.block_rows import payloads, payloads_in_order, to_batches
from yarnflow.spark.elements.element_frames import CollectedElements, Lines


def blocks(*placed: tuple[int, int]) -> list[pa.RecordBatch]:
    """A batch for each sender and sequence, whose elements tell them."""
    made: list[pa.RecordBatch] = []
    for sender, sequence in placed:
        values = [f"{sender}.{sequence}", f"{sender}.{sequence}b"]
        payload = pickle.dumps((0, values, None, None))
        made += to_batches([Block(SINK_LEVEL, 0, 9, ELEMENTS, sender, sequence, payload)])
    return made


SENT = ["1.0", "1.0b", "1.1", "1.1b", "2.0", "2.0b", "2.10", "2.10b"]


def lines(batches: list[pa.RecordBatch], read: Any) -> list[str]:
    return [line for batch in Lines(read)(batches) for line in batch.column(0).to_pylist()]


def test_blocks_that_spark_has_mixed_come_by_sender_and_sequence() -> None:
    mixed = blocks((2, 10), (1, 1), (2, 0), (1, 0))
    one_batch = pa.Table.from_batches(mixed).combine_chunks().to_batches()
    assert lines(mixed, payloads_in_order) == SENT
    assert lines(one_batch, payloads_in_order) == SENT
    collected = CollectedElements(PICKLED, payloads_in_order)(mixed)
    assert [v for b in collected for p in b.column(0).to_pylist() for v in pickle.loads(p)] == SENT


def test_blocks_from_a_source_are_not_waited_for() -> None:
    given: list[int] = []

    def batches() -> Any:
        for number, batch in enumerate(blocks((1, 0), (1, 1))):
            given.append(number)
            yield batch

    made = Lines(payloads)(batches())
    assert next(made).column(0).to_pylist() == ["1.0", "1.0b"]
    assert given == [0]
