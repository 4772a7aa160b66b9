"""Where state of operators is in a query, and what becomes of it when the program has others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.operators.task.test_planner import environment, identity, numbers, planned
from yarnflow.api import StreamExecutionEnvironment
from yarnflow.api.common import Time
from yarnflow.api.datastream.window import TumblingProcessingTimeWindows
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.operators.task.state_layout import (
    LastSource,
    LevelMove,
    LevelPart,
    StateLayout,
    is_changed,
    layout_of,
    moves,
    spark_number,
)

Levels = tuple[tuple[str, ...], ...]


def layout(*levels: str, told: dict[int, str] | None = None) -> StateLayout:
    """Each operator is called by one letter."""
    return StateLayout(
        tuple(tuple(level) for level in levels),
        tuple(tuple((told or {}).get(number, "")) for number in range(len(levels))),
        LastSource.OF_PROGRAM,
    )


def part(source: int, operators: str) -> LevelPart:
    return LevelPart(source, frozenset(operators))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(layout("a", "b"), layout("a", "b"), id="same"),
        pytest.param(layout("a", "b"), layout("ac", "b"), id="one more in a level that was there"),
        pytest.param(layout(""), layout("a"), id="a level that had only been told something"),
        pytest.param(layout("a", told={0: "x"}), layout("a"), id="one less that was only told something"),
        pytest.param(layout("a", "b", told={0: "x"}), layout("a", "b", told={0: "xy"}), id="told more"),
        pytest.param(layout("a", told={0: "x"}), layout("ax"), id="state where it was only told something"),
        pytest.param(layout(), layout(), id="none"),
    ],
)
def test_state_that_is_in_its_place_stays(before: StateLayout, after: StateLayout) -> None:
    assert moves(before, after) is None and not is_changed(before, after)
    assert is_changed(before, StateLayout(after.levels, after.told, LastSource.TICKS))


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        pytest.param(
            layout("b"), layout("a", "b"), (LevelMove(()), LevelMove((part(0, "b"),), True)), id="shifted"
        ),
        pytest.param(layout("a", "b"), layout("b"), (LevelMove((part(1, "b"),), True),), id="first one gone"),
        pytest.param(layout("ab"), layout("b"), (LevelMove((part(0, "b"),)),), id="one of two gone"),
        pytest.param(layout("a"), layout("b"), (LevelMove(()),), id="another"),
        pytest.param(layout("a"), layout(), (), id="none left"),
        pytest.param(layout(), layout("a"), (LevelMove(()),), id="first one"),
        pytest.param(
            layout("ab", "c"),
            layout("a", "bc"),
            (LevelMove((part(0, "a"),)), LevelMove((part(0, "b"), part(1, "c")))),
            id="torn apart and put together",
        ),
        pytest.param(
            layout("a", "b"),
            layout("b", "a"),
            (LevelMove((part(1, "b"),), True), LevelMove((part(0, "a"),), True)),
            id="exchanged",
        ),
        pytest.param(
            # what an operator without state was told goes along, from wherever it was
            layout("a", "b", told={0: "x"}),
            layout("b", told={0: "x"}),
            (LevelMove((part(0, "x"), part(1, "b"))),),
            id="told",
        ),
        pytest.param(
            # in their places are those with state only
            layout("a", "b", told={0: "x"}),
            layout("a", "b", told={1: "x"}),
            (LevelMove((part(0, "a"),), True), LevelMove((part(0, "x"), part(1, "b")))),
            id="told elsewhere",
        ),
        pytest.param(
            layout("", "b", told={0: "x"}),
            layout("c", "b", told={1: "x"}),
            (LevelMove(()), LevelMove((part(0, "x"), part(1, "b")))),
            id="a level that had only been told something is another's",
        ),
    ],
)
def test_where_the_state_of_each_level_comes_from(
    before: StateLayout, after: StateLayout, found: tuple[LevelMove, ...]
) -> None:
    assert moves(before, after) == found and is_changed(before, after)


def test_the_operator_of_the_last_level_is_sparks_first() -> None:
    assert [spark_number(3, level) for level in range(3)] == [2, 1, 0]


def reduced(stream: Any, uid: str) -> Any:
    return stream.key_by(identity).reduce(lambda a, b: a).uid(uid)


def one(env: StreamExecutionEnvironment) -> None:
    reduced(numbers(env), "b").print()


def one_before(env: StreamExecutionEnvironment) -> None:
    reduced(reduced(numbers(env), "a"), "b").print()


def only_told(env: StreamExecutionEnvironment) -> None:
    # no state of its own, but it waits for the watermarks of two streams
    both = numbers(env).union(numbers(env)).broadcast().map(identity).uid("x")
    reduced(both, "b").print()


def one_without_state_behind(env: StreamExecutionEnvironment) -> None:
    # in the level of the other, where its watermark is kept
    reduced(numbers(env), "b").map(identity).uid("x").print()


@pytest.mark.parametrize(
    ("program", "levels", "told"),
    [
        pytest.param(one, [["b"]], [[]], id="one"),
        pytest.param(one_before, [["a"], ["b"]], [[], []], id="one before"),
        pytest.param(only_told, [[], ["b"]], [["x"], []], id="told"),
        pytest.param(one_without_state_behind, [["b"]], [["x"]], id="one without state behind"),
    ],
)
def test_layouts_of_programs(
    program: Callable[[StreamExecutionEnvironment], None], levels: list[list[str]], told: list[list[str]]
) -> None:
    env = environment()
    program(env)
    graph, plan = planned(env)
    uids = {node.operator_hash: node.uid for node in graph.nodes}
    made = layout_of(plan, endless=True)
    assert [[uids[o] for o in level] for level in made.levels] == levels
    assert [[uids[o] for o in level] for level in made.told] == told
    # nothing is due by the clock
    assert made.last_source is LastSource.OF_PROGRAM
    assert from_json(StateLayout, to_json(made)) == made


def windows_by_the_clock(env: StreamExecutionEnvironment) -> None:
    windows = numbers(env).key_by(identity).window(TumblingProcessingTimeWindows.of(Time.seconds(1)))
    windows.reduce(lambda a, b: a).print()


def test_ticks_come_where_something_may_be_due_while_nothing_is_read() -> None:
    env = environment()
    windows_by_the_clock(env)
    assert layout_of(planned(env)[1], endless=True).last_source is LastSource.TICKS


def test_input_that_ends_has_its_end_as_the_last_source() -> None:
    for program in (one, windows_by_the_clock):
        env = environment()
        program(env)
        _, plan = planned(env)
        bounded, endless = layout_of(plan, endless=False), layout_of(plan, endless=True)
        assert bounded.last_source is LastSource.END
        assert is_changed(bounded, endless) and is_changed(endless, bounded)
