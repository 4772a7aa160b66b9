"""What of a program its saved state depends on, as plain values.

Written into every savepoint's and checkpoint's manifest; :mod:`yarnflow.graph.state.shape` makes it
from a job graph and compares two.  Decides nothing.  Flink counterpart: ``OperatorState`` and the
serializer snapshots in a savepoint's ``_metadata``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldShape:
    """One field of a key or of a state."""

    name: str
    #: Spark DDL type; empty = only Spark knew it
    type: str = ""


@dataclass(frozen=True, slots=True)
class SourceShape:
    """One source of a query."""

    #: 32 hex digits, from the uid or from the position in the graph
    operator_hash: str
    name: str
    #: ``file``, ``rate``, ``socket`` or ``collection``
    kind: str
    uid: str = ""
    #: ``file:line`` of the call in the user's program
    origin: str = ""
    #: path, host and port or the like; for people, never compared
    location: str = ""
    bounded: bool = False


@dataclass(frozen=True, slots=True)
class OperatorShape:
    """One stateful operator of a query."""

    #: 32 hex digits, from the uid or from the position in the graph
    operator_hash: str
    name: str
    #: ``running aggregate``, ``reduce``, ``window aggregate``, ``window function`` or ``SQL``
    kind: str
    uid: str = ""
    #: ``file:line`` of the call in the user's program
    origin: str = ""
    #: SQL of each key field, ``expression AS name``
    key: tuple[str, ...] = ()
    key_schema: tuple[FieldShape, ...] = ()
    #: what is kept per key: aggregates or the query, as written
    state: tuple[str, ...] = ()
    value_schema: tuple[FieldShape, ...] = ()
    #: e.g. ``tumbling, size 10 s``; empty = no window
    window: str = ""


@dataclass(frozen=True, slots=True)
class QueryShape:
    """One streaming query, with what its checkpoint directory holds in the order Spark numbers it."""

    #: of its directory, ``query-<name>``
    name: str
    #: the operator the name comes from
    operator: str
    uid: str = ""
    origin: str = ""
    sources: tuple[SourceShape, ...] = ()
    operators: tuple[OperatorShape, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgramShape:
    """A whole program."""

    #: ``GRAPH`` or ``SCRIPT``; of a script nothing else is known
    kind: str
    #: over operators and edges; equal = the same program but for its functions and options
    graph_hash: str = ""
    #: into which keyed state is divided; 0 = not known
    partitions: int = 0
    queries: tuple[QueryShape, ...] = ()
