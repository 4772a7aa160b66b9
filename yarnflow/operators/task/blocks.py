"""Blocks: what travels between levels.  One block is many elements for one operator input in one group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: every group of the level
ALL_GROUPS: Final = -1
#: level of what goes to sinks
SINK_LEVEL: Final = -1

#: kinds of blocks: elements for an operator's input …
ELEMENTS: Final = 0
#: … the watermark of one channel …
WATERMARK: Final = 1
#: … no element follows on any channel: the input of the job has ended
END: Final = 2
#: … time has passed: processing timers may be due
TICK: Final = 3


@dataclass(frozen=True, slots=True)
class Block:
    """One row between two levels.

    Blocks of one group are handled in the order of sender and sequence, so elements of one key from one
    sender stay in their order.
    """

    level: int
    #: key group or number of the subtask; :data:`ALL_GROUPS`
    group: int
    #: ELEMENTS: node of the operator or sink; WATERMARK: channel
    target: int
    kind: int
    #: who made it: unique in a level and micro-batch
    sender: int
    #: rises within a sender
    sequence: int
    #: ELEMENTS: pickled (input, values, timestamps or None, keys or None), which may be packed on the way to
    #: key groups; WATERMARK: a pickled status
    payload: bytes
