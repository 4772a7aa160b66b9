"""In which levels of a query the state of its operators lies, and how it gets to others.

Pure: compares two layouts.  State belongs to operators and is told apart by their ids; only where it lies
depends on the other operators of a program.  Flink counterpart: ``StateAssignmentOperation``, which
deals the state of operators out to the tasks of another graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Final

from yarnflow.operators.task.plan import OperatorPlan
from yarnflow.operators.task.planner import LevelsPlan

#: in a query's directory: the layout of the state that is there
LAYOUT_FILE: Final = "state-layout"


class LastSource(Enum):
    """What the last source of a query is; Spark knows sources by their order."""

    OF_PROGRAM = "OF_PROGRAM"
    #: tells the time, behind all others
    TICKS = "TICKS"
    #: tells the end of input, behind all others
    END = "END"


@dataclass(frozen=True, slots=True)
class StateLayout:
    """What is on disk of one query."""

    #: ids of the operators with state in each level that keeps something, in the order of the levels
    levels: tuple[tuple[str, ...], ...]
    #: ids of the others in each of them: what they were told last of the time is kept
    told: tuple[tuple[str, ...], ...]
    last_source: LastSource


@dataclass(frozen=True, slots=True)
class LevelPart:
    """What a level has from one of the levels as they were."""

    #: number of the latter in its layout
    source: int
    #: ids of the operators whose state it is
    operators: frozenset[str]


@dataclass(frozen=True, slots=True)
class LevelMove:
    """What the state of one level is made of."""

    parts: tuple[LevelPart, ...]
    #: it is all the state of its one part's level
    whole: bool = False


def layout_of(plan: LevelsPlan, endless: bool) -> StateLayout:
    """The layout that a plan makes.

    Parameters
    ----------
    plan : LevelsPlan
    endless : bool
        The input never ends.
    """
    kept = [level for level in plan.levels if level.stateful]
    return StateLayout(
        tuple(_ids(operator for operator in level.operators if operator.stateful) for level in kept),
        tuple(_ids(operator for operator in level.operators if not operator.stateful) for level in kept),
        _last_source(plan, endless),
    )


def _last_source(plan: LevelsPlan, endless: bool) -> LastSource:
    if not endless:
        return LastSource.END
    return LastSource.TICKS if plan.needs_ticks else LastSource.OF_PROGRAM


def _ids(operators: Iterable[OperatorPlan]) -> tuple[str, ...]:
    return tuple(sorted(operator.operator_id for operator in operators))


def is_changed(before: StateLayout, after: StateLayout) -> bool:
    """Whether a query of one layout cannot go on as it is from what one of the other left."""
    return before.last_source is not after.last_source or moves(before, after) is not None


def moves(before: StateLayout, after: StateLayout) -> tuple[LevelMove, ...] | None:
    """How the state of each level comes about; None = all of it is where it is to be.

    Operators that were not there have none.  The state of those that are not there any more is left out.
    """
    there = [*zip(before.levels, before.told, strict=True)]
    wanted = [*zip(after.levels, after.told, strict=True)]
    if len(there) == len(wanted) and all(
        set(was) <= set(now) for (was, _), (now, _) in zip(there, wanted, strict=True)
    ):
        places = {operator: level for level, parts in enumerate(there) for operator in chain(*parts)}
        if all(places.get(o, level) == level for level, parts in enumerate(wanted) for o in chain(*parts)):
            return None
    return tuple(_move(there, {*now, *told}) for now, told in wanted)


def _move(there: list[tuple[tuple[str, ...], tuple[str, ...]]], operators: set[str]) -> LevelMove:
    found = ((source, operators.intersection((*was, *told))) for source, (was, told) in enumerate(there))
    parts = tuple(LevelPart(source, frozenset(shared)) for source, shared in found if shared)
    return LevelMove(parts, len(parts) == 1 and operators.issuperset(there[parts[0].source][0]))


def spark_number(levels: int, level: int) -> int:
    """Spark's number of the operator of a level; it counts from the last one on.

    Parameters
    ----------
    levels : int
        How many levels with state there are.
    level : int
        From 0 on, of these.
    """
    return levels - 1 - level
