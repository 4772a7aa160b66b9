"""The kinds of state an operator can register."""

from __future__ import annotations

from enum import Enum


class StateKind(Enum):
    """How a state's entries are read, written and made durable."""

    #: one value, replaced whole
    VALUE = "value"
    #: elements in order; what was appended is made durable, not the list
    LIST = "list"
    #: entries by a key of the user's; each is made durable by itself
    MAP = "map"
    #: one value combined by a ReduceFunction; stored as VALUE is
    REDUCING = "reducing"
    #: one accumulator of an AggregateFunction; stored as VALUE is
    AGGREGATING = "aggregating"
