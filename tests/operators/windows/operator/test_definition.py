"""Which operator a definition makes, how it describes itself, and what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tests.operators.windows.operator.window_functions import TEN_MS, GeneralTumbling, Listed, Sum
from yarnflow.errors import GraphError
from yarnflow.operators.windows.count_windows import CountTumblingWindowAssigner
from yarnflow.operators.windows.operator.aligned import AlignedWindowOperator
from yarnflow.operators.windows.operator.definition import WindowDefinition
from yarnflow.operators.windows.operator.general import WindowOperator
from yarnflow.operators.windows.operator.sessions import SessionOperator
from yarnflow.operators.windows.session_windows import EventTimeSessionWindows
from yarnflow.operators.windows.time_windows import (
    SlidingProcessingTimeWindows,
    TumblingProcessingTimeWindows,
)
from yarnflow.operators.windows.triggers import (
    ContinuousEventTimeTrigger,
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    PurgingTrigger,
)


@pytest.mark.parametrize(
    "assigner, trigger, operator",
    [
        (TEN_MS, None, AlignedWindowOperator),
        (TEN_MS, EventTimeTrigger(), AlignedWindowOperator),
        (TEN_MS, PurgingTrigger(EventTimeTrigger()), WindowOperator),
        (GeneralTumbling(10, 0), None, WindowOperator),
        (SlidingProcessingTimeWindows(10, 5, 0), None, AlignedWindowOperator),
        (TumblingProcessingTimeWindows(10, 0), EventTimeTrigger(), WindowOperator),
        (EventTimeSessionWindows(10), None, SessionOperator),
        (EventTimeSessionWindows(10), ContinuousEventTimeTrigger(5), WindowOperator),
        (CountTumblingWindowAssigner(10), None, WindowOperator),
    ],
)
def test_usual_windows_are_handled_per_chunk(assigner: Any, trigger: Any, operator: Any) -> None:
    definition = WindowDefinition(assigner, combine=Sum(), trigger=trigger)
    assert type(definition.build()) is operator
    assert type(pickle.loads(pickle.dumps(definition)).build()) is operator


def test_definitions_describe_themselves_as_pyflinks() -> None:
    definition = WindowDefinition(TEN_MS, Listed(), Sum())
    assert definition.name == "TumblingEventTimeWindows"
    assert definition.description() == (
        "Window(TumblingEventTimeWindows(10, 0), EventTimeTrigger, Sum, Listed)"
    )
    assert WindowDefinition(TEN_MS, Listed(), trigger=CountTrigger(2)).description("AllWindow") == (
        "AllWindow(TumblingEventTimeWindows(10, 0), CountTrigger, Listed)"
    )


def test_windows_that_cannot_be_are_refused() -> None:
    with pytest.raises(GraphError, match="EventTimeSessionWindows merges windows, and NeverTrigger does not"):
        WindowDefinition(EventTimeSessionWindows(10), Listed(), trigger=NeverTrigger())
    with pytest.raises(GraphError, match="no function for its windows; call reduce"):
        WindowDefinition(TEN_MS)
    with pytest.raises(GraphError, match="TumblingEventTimeWindows: int combines no elements; give a Reduce"):
        WindowDefinition(TEN_MS, combine=5)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="allowed lateness of -1 ms is below 0"):
        WindowDefinition(TEN_MS, Listed(), allowed_lateness_ms=-1)
    with pytest.raises(GraphError, match="function is no window function; subclass WindowFunction"):
        WindowDefinition(TEN_MS, lambda key, window, inputs: [])  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="EventTimeSessionWindows: the gap of 0 ms is not above 0"):
        EventTimeSessionWindows(0)
