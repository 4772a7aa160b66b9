"""The table machine every state machine of yarnflow is written in.

A machine is a table: ``(state, event type) → edge``, where an edge is a pure function from
model and event to the next model and the effects, together with the states it may lead to.
What the table does not hold is illegal and changes nothing.  This module never performs an
effect, never reads a clock and keeps no history: events carry their time, and a model
carries the story of how it got where it is.

Flink counterpart: the ``transitionState`` methods of ``DefaultExecutionGraph`` and
``Execution``, whose legal moves are spread over the callers; here they are data, so that
documentation and tests can read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, Protocol, TypeVar, cast

from yarnflow.errors import InvalidTransition, InvariantViolated

S = TypeVar("S", bound=Enum)  # state

#: state → time of the last entry in ms, in order of entry
Timestamps = tuple[tuple[S, int], ...]


class Model(Protocol):
    """What a machine reads of its models, which are values."""

    @property
    def state(self) -> Enum: ...

    @property
    def timestamps(self) -> Timestamps[Any]:
        """The last entry is that of :attr:`state`."""


M = TypeVar("M", bound=Model)
E = TypeVar("E")  # event: union of all the machine takes
E1 = TypeVar("E1")  # event: one of them
F = TypeVar("F")  # effect


def stamped(timestamps: Timestamps[S], state: S, at_ms: int) -> Timestamps[S]:
    """``timestamps`` with ``state`` entered at ``at_ms``; an earlier entry of it is dropped."""
    return tuple(entry for entry in timestamps if entry[0] is not state) + ((state, at_ms),)


def story_of(timestamps: Timestamps[S]) -> str:
    """One line: the states in order of entry, each with its time."""
    return " → ".join(f"{state.name}@{at_ms}" for state, at_ms in timestamps)


@dataclass(frozen=True, slots=True)
class Edge(Generic[M, E, F]):
    """Where an event may lead from one state.

    Attributes
    ----------
    targets : tuple of Enum
        The states the function may return a model in.
    function : callable
        Pure: ``(model, event) → (next model, effects)``.
    note : str
        Why the edge exists; printed in ``docs/states.md``.
    """

    targets: tuple[Enum, ...]
    function: Callable[[M, E], tuple[M, tuple[F, ...]]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Row(Generic[M, E, F]):
    """One line of a table, see :func:`on`."""

    state: Enum
    event: type
    edge: Edge[M, E, F]


def on(
    state: Enum,
    event: type[E1],
    function: Callable[[M, E1], tuple[M, tuple[F, ...]]],
    *targets: Enum,
    note: str = "",
) -> Row[M, E, F]:
    """A row: in ``state``, an ``event`` runs ``function``, which leads to one of ``targets``."""
    # Sound because Machine.step looks the edge up by the event's exact type.
    general = cast("Callable[[M, E], tuple[M, tuple[F, ...]]]", function)
    return Row(state, event, Edge(targets, general, note))


class Machine(Generic[M, E, F]):
    """A state machine as data.

    Parameters
    ----------
    name : str
        For error messages and documentation.
    states : iterable of Enum
        All states; each has rows or is terminal.
    initial, terminal
        Where models start; where nothing leads out.
    id_of : callable
        Reads a model's name for people.
    rows : iterable of Row
        The table; two rows for one ``(state, event)`` are an error.
    contradiction : callable
        What of a model cannot be, without its name; empty = nothing.
    """

    def __init__(
        self,
        name: str,
        states: Iterable[Enum],
        initial: Enum,
        terminal: Iterable[Enum],
        id_of: Callable[[M], str],
        rows: Iterable[Row[M, E, F]],
        contradiction: Callable[[M], str] = lambda _model: "",
    ) -> None:
        self.name = name
        self.states = tuple(states)
        self.initial = initial
        self.terminal = frozenset(terminal)
        self._id_of = id_of
        self._contradiction = contradiction
        table: dict[tuple[Enum, type], Edge[M, E, F]] = {}
        for row in rows:
            key = (row.state, row.event)
            if key in table:
                raise InvariantViolated(
                    f"{name}: two rows for {row.state.name} on {row.event.__name__}; keep one"
                )
            table[key] = row.edge
        self.table: Mapping[tuple[Enum, type], Edge[M, E, F]] = table

    @property
    def events(self) -> tuple[type, ...]:
        """All event types of the table, in order of first mention."""
        return tuple(dict.fromkeys(event for _, event in self.table))

    def accepts(self, state: Enum, event: type) -> bool:
        """Whether ``event`` is legal in ``state``."""
        return (state, event) in self.table

    def step(self, model: M, event: E) -> tuple[M, tuple[F, ...]]:
        """Apply one event.

        Returns
        -------
        tuple
            The next model and the effects to perform, in order.

        Raises
        ------
        InvalidTransition
            The table has no such row; ``model`` is still the truth.
        InvariantViolated
            The edge's function left the states it is allowed to reach (a bug).
        """
        state = model.state
        edge = self.table.get((state, type(event)))
        if edge is None:
            raise InvalidTransition(
                f"{self.name} {self._id_of(model)}: {type(event).__name__} is not legal in state "
                f"{state.name}; story: {story_of(model.timestamps)}"
            )
        after, effects = edge.function(model, event)
        reached = after.state
        if reached not in edge.targets:
            raise InvariantViolated(
                f"{self.name} {self._id_of(model)}: {type(event).__name__} led from {state.name} to "
                f"{reached.name}, allowed: {', '.join(target.name for target in edge.targets)}"
            )
        return after, effects

    def check(self, model: M) -> None:
        """Raise :class:`InvariantViolated` when a model contradicts itself."""
        why = self._contradiction(model)
        if not model.timestamps or model.timestamps[-1][0] is not model.state:
            why = f"the last timestamp is not of state {model.state.name}"
        if why:
            raise InvariantViolated(f"{self.name} {self._id_of(model)}: {why}")

    def mermaid(self) -> str:
        """The table as a mermaid state diagram; edges with equal ends share one arrow."""
        arrows: dict[tuple[Enum, Enum], list[str]] = {}
        for (state, event), edge in self.table.items():
            for target in edge.targets:
                arrows.setdefault((state, target), []).append(event.__name__)
        lines = ["stateDiagram-v2", f"    [*] --> {self.initial.name}"]
        for (source, target), names in arrows.items():
            lines.append(f"    {source.name} --> {target.name}: {', '.join(names)}")
        lines.extend(f"    {state.name} --> [*]" for state in self.states if state in self.terminal)
        return "\n".join(lines)

    def markdown(self) -> str:
        """The table as a Markdown table, one line per edge, in order of states."""
        lines = ["| State | Event | Next | Why |", "|---|---|---|---|"]
        for state in self.states:
            if state in self.terminal:
                lines.append(f"| {state.name} | — | — | terminal |")
            for (source, event), edge in self.table.items():
                if source is state:
                    targets = ", ".join(target.name for target in edge.targets)
                    lines.append(f"| {state.name} | {event.__name__} | {targets} | {edge.note} |")
        return "\n".join(lines)
