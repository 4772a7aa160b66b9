"""States of operators on elements as rows of a table."""

from __future__ import annotations

from yarnflow.cli.element_state import element_operators, entry_rows, state_rows
from yarnflow.core.checkpoint.program_shape import OperatorShape, ProgramShape, QueryShape
from yarnflow.operators.state.entries import EVENT_TIMERS, Overview, SavedEntry
from yarnflow.spark.state.element_state import ElementState

PROGRAM = ProgramShape(
    "GRAPH",
    queries=(
        QueryShape(
            "elements",
            "operators on elements",
            operators=(
                OperatorShape("b2", "KEYED PROCESS", "keyed process", uid="totals"),
                OperatorShape("a1", "Window", "window"),
            ),
        ),
    ),
)


def test_an_operator_is_found_by_uid_and_name_and_all_by_their_query() -> None:
    assert element_operators(PROGRAM, "totals") == frozenset({"b2"})
    assert element_operators(PROGRAM, "Window") == frozenset({"a1"})
    assert element_operators(PROGRAM, "elements") == frozenset()
    assert element_operators(PROGRAM, "other") is None
    assert element_operators(ProgramShape("GRAPH"), "elements") is None


def test_states_come_in_the_order_of_the_operators() -> None:
    entries = [
        SavedEntry("a1", "window-contents", "list", "x", "w", [1]),
        SavedEntry("b2", "sum", "value", "x", None, 1),
        SavedEntry("b2", "sum", "value", "y", None, 2),
        SavedEntry("b2", EVENT_TIMERS, "timer", "x", None, 1_500),
    ]
    overview = Overview()
    overview.add(entries)
    found = ElementState(overview, tuple(entries), False)
    assert state_rows(PROGRAM, found) == [
        ("KEYED PROCESS", "totals", "event timers", "timer", "1", "1"),
        ("KEYED PROCESS", "totals", "sum", "value", "2", "2"),
        ("Window", "", "window-contents", "list", "1", "1"),
    ]
    assert entry_rows(found) == [
        ("window-contents", "'x'", "'w'", "[1]"),
        ("sum", "'x'", "", "1"),
        ("sum", "'y'", "", "2"),
        ("event timers", "'x'", "", "1970-01-01T00:00:01.500+00:00"),
    ]


def test_a_timer_beyond_all_dates_is_shown_as_it_is() -> None:
    timer = SavedEntry("b2", EVENT_TIMERS, "timer", "x", None, 2**63 - 1)
    assert entry_rows(ElementState(Overview(), (timer,), False))[0][-1] == f"{2**63 - 1} ms"
