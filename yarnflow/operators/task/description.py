"""A level of a program as plain values: what the translator writes and the runner reads.

A program is cut where elements must change places.  Operators between two cuts are one level: level 0
runs behind the sources, a later one once per key group and batch.  Everything here is pickled by value
with the users' functions in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from yarnflow.operators.process.operator import OperatorDefinition

# --- where an operator's output goes ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToOperator:
    """To an operator of the same level, without leaving the process (Flink: chained)."""

    operator_id: str
    input_index: int = 0


@dataclass(frozen=True, slots=True)
class ByKey:
    """To the key group of each element's key; keys travel with the elements."""

    #: KeySelector or function of one value
    key_selector: Any


@dataclass(frozen=True, slots=True)
class Broadcast:
    """To every group."""


@dataclass(frozen=True, slots=True)
class ByPartitioner:
    """To the subtask a user's partitioner says (Flink: ``partition_custom``)."""

    #: Partitioner or function of key and number of subtasks
    partitioner: Any
    key_selector: Any


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """To one subtask after the other (Flink: ``rebalance``, ``rescale``, ``shuffle``)."""


@dataclass(frozen=True, slots=True)
class ToFirst:
    """To subtask 0 (Flink: ``global``)."""


@dataclass(frozen=True, slots=True)
class ToSame:
    """To the group of the same number (Flink: ``forward``); sender and receiver have as many groups."""


Partitioning = ByKey | Broadcast | ByPartitioner | RoundRobin | ToFirst | ToSame


@dataclass(frozen=True, slots=True)
class ToExchange:
    """To an operator of a later level.

    Attributes
    ----------
    edge : str
        Name of the exchange, unique in the program; the later level has an
        :class:`InputDescription` of the same name.
    partitioning : Partitioning
        How an element's group is found.
    groups : int
        Number of groups of the receiver: key groups, or subtasks if it is not keyed.
    """

    edge: str
    partitioning: Partitioning
    groups: int


@dataclass(frozen=True, slots=True)
class ToSink:
    """Out of the program."""

    sink_id: str


Route = ToOperator | ToExchange | ToSink


# --- a level ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OperatorDescription:
    """One operator of a level.

    Attributes
    ----------
    id : str
        Names its state; stable over versions of the program (Flink: ``uid``).
    name : str
        What the user reads in messages (Flink: ``name``).
    definition : OperatorDefinition
        Builds it.
    routes : tuple of Route
        Where its output goes; every element goes to all of them.
    side_routes : dict of str to tuple of Route
        Id of an OutputTag → where that output goes; side outputs without an entry are dropped.
    keyed : bool
        Its functions may use keyed state and timers.
    parallelism : int
        What functions are told.
    groups : int
        In how many groups it runs, from group 0: key groups of a keyed operator, else subtasks;
        an operator that is chained has the groups of the one before it.
    """

    id: str
    name: str
    definition: OperatorDefinition
    routes: tuple[Route, ...] = ()
    side_routes: dict[str, tuple[Route, ...]] = field(default_factory=dict)
    keyed: bool = False
    parallelism: int = 1
    groups: int = 1


@dataclass(frozen=True, slots=True)
class InputDescription:
    """One edge that ends in a level.

    Attributes
    ----------
    edge : str
        As in :class:`ToExchange`; level 0 has one per source, with a name of its own.
    operator_id, input_index
        Who gets the elements; several edges may end in one input (Flink: ``union``).
    senders : int
        How many senders the edge has, numbered from 0: groups of the operator it comes from, 1 for a
        source.  The watermark waits until all have told theirs.
    """

    edge: str
    operator_id: str
    input_index: int = 0
    senders: int = 1


@dataclass(frozen=True, slots=True)
class LevelDescription:
    """Operators that run together, and the edges that end in them.

    Attributes
    ----------
    operators : tuple of OperatorDescription
        Each behind all of this level that it gets elements from.
    """

    operators: tuple[OperatorDescription, ...]
    inputs: tuple[InputDescription, ...]
