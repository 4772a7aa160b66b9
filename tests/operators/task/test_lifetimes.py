"""Operators of a level are opened and closed together."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import pytest

from yarnflow.graph.closures import Closure
from yarnflow.operators.process.operator import OperatorBase, OperatorContext
from yarnflow.operators.task.level_run import LevelRun
from yarnflow.operators.task.plan import ChainedRoute, JobInfo, LevelPlan, OperatorPlan, SinkRoute


@dataclass
class Noted:
    """An operator that notes what is done with it."""

    name: str
    notes: list[str]
    fails: str = ""

    def build(self) -> Any:
        return NotedOperator(self)


class NotedOperator(OperatorBase):
    def __init__(self, definition: Noted) -> None:
        self._definition = definition

    def _note(self, what: str) -> None:
        self._definition.notes.append(f"{what} {self._definition.name}")
        if self._definition.fails == what:
            raise ValueError(f"{what} {self._definition.name}")

    def open(self, context: OperatorContext) -> None:
        self._note("open")

    def close(self) -> None:
        self._note("close")


def opened(*definitions: Noted) -> LevelRun:
    """A chain of operators, first to last."""
    made = dict(enumerate(definitions))
    operators = tuple(
        OperatorPlan(
            number,
            f"op{number}",
            f"Op {number}",
            "job.py:1",
            Closure(pickle.dumps(number), "it", "job.py:1"),
            (ChainedRoute(number + 1, 0) if number + 1 in made else SinkRoute(90),),
        )
        for number in made
    )
    return LevelRun(
        LevelPlan(1, operators, head=(ChainedRoute(0, 0),)),
        JobInfo(),
        0,
        lambda closure: made[pickle.loads(closure.payload)],
        pickle.dumps,
        pickle.loads,
    )


def test_what_was_opened_is_closed_when_the_next_cannot_be_opened() -> None:
    notes: list[str] = []
    chain = Noted("a", notes), Noted("b", notes, "open"), Noted("c", notes, "close")
    with pytest.raises(ValueError, match="open b"):
        opened(*chain)
    assert notes == ["open c", "open b", "close b", "close c"]


def test_all_are_closed_and_their_errors_name_operator_and_line() -> None:
    notes: list[str] = []
    run = opened(Noted("a", notes, "close"), Noted("b", notes, "close"), Noted("c", notes))
    errors = run.close()
    assert [str(error) for error in errors] == ["close a", "close b"]
    assert errors[1].__notes__ == ["operator 'Op 1': close()", "at job.py:1"]
    assert notes[-3:] == ["close a", "close b", "close c"]
