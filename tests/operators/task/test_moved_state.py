"""A program in memory that goes on from the state of another one, whose levels are others."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from tests.operators.state.backends.test_backends import new_backends
from tests.operators.task.test_several_streams import STRICT, Program, Timer, itself, whole
from yarnflow.api.common import Types
from yarnflow.api.datastream import KeyedProcessFunction
from yarnflow.operators.state.backends.moved_group import GroupPart, put_together
from yarnflow.operators.state.backends.turns import HASHMAP
from yarnflow.operators.task.state_layout import StateLayout, layout_of, moves
from yarnflow.testing.state import StoredGroup


class Passes(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        yield value


def timers_of_two(before_right: bool = False, stateless: bool = False) -> Program:
    """Timers of two streams, of which one goes through a keyed operator before, or none does."""
    program = Program()
    left, right = (
        program.endless().assign_timestamps_and_watermarks(STRICT).uid(uid) for uid in ("left", "right")
    )
    if before_right:
        right = right.key_by(whole).process(Passes(), Types.LONG()).uid("before")
    both = left.union(right)
    if stateless:
        # no state of its own, but it stands behind an exchange and waits for two streams
        both = both.broadcast().map(itself, Types.LONG()).uid("stateless")
    return program.run(both.key_by(whole).process(Timer(), Types.LONG()).uid("timers"))


def layout(program: Program) -> StateLayout:
    return layout_of(program.plan, endless=True)


def groups(program: Program) -> list[dict[int, bytes]]:
    """Of the levels with state, in their order."""
    both = zip(program.plan.levels, program.job.stores, strict=True)
    return [stores for level, stores in both if level.stateful]


def go_on(program: Program, before: Program) -> None:
    """As a job does that starts from the state of another."""
    wanted, backends = moves(layout(before), layout(program)), new_backends()
    assert wanted is not None
    saved = groups(before)
    for move, stores in zip(wanted, groups(program), strict=True):
        for group in {group for part in move.parts for group in saved[part.source]}:
            parts = []
            for part in move.parts:
                if group in saved[part.source]:
                    stored = StoredGroup()
                    backends.write(HASHMAP, stored, pickle.loads(saved[part.source][group]))
                    assert stored.stored_head is not None
                    parts.append(GroupPart(stored.stored_head, stored.entries, part.operators))
            stores[group] = pickle.dumps(put_together(parts))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(timers_of_two, lambda: timers_of_two(True), id="another operator before one input"),
        pytest.param(lambda: timers_of_two(True), timers_of_two, id="none before an input any more"),
    ],
)
def test_a_stream_that_has_told_its_time_need_not_tell_it_again(before: Any, after: Any) -> None:
    old, new = before(), after()
    assert old.batch(0, [50, 100, 100]) == []
    go_on(new, old)
    # the other stream tells its time first now
    assert new.batch(0, [], [200, 200]) == ["50"]


def test_what_an_operator_without_state_was_told_moves_along() -> None:
    old, new = timers_of_two(stateless=True), timers_of_two(True, stateless=True)
    assert old.batch(0, [50, 100, 100]) == []
    assert layout(old).levels[0] == () and layout(new).levels[1] == ()
    go_on(new, old)
    assert new.batch(0, [], [200, 200]) == ["50"]
