"""Which functions keep state for ever, as far as their code tells.

Decided when the program calls the operator, for a warning alone: what cannot be told counts as kept in
bounds.
"""

from __future__ import annotations

from typing import Any, Final

from yarnflow.api.building.processing_timers import TIME_TO_LIVE, names_in
from yarnflow.operators.windows.count_windows import GlobalWindows
from yarnflow.operators.windows.operator.definition import WindowDefinition
from yarnflow.operators.windows.triggers import PurgingTrigger

_STATES: Final = frozenset(
    ["get_state", "get_list_state", "get_map_state", "get_reducing_state", "get_aggregating_state"]
)
#: what lets go of state; ``remove`` is of maps
_LETS_GO: Final = frozenset([TIME_TO_LIVE, "clear", "remove"])
EVERY_KEY: Final = "keeps a value for every key for ever; use a window(…) if keys come and go"


def kept_by_function(function: Any) -> str:
    """What a function of a keyed stream keeps for ever; empty = nothing, or nobody can tell."""
    names = names_in(function)
    if names is None or not names & _STATES or names & _LETS_GO:
        return ""
    return (
        "keeps its state for every key for ever: nothing in the function clears it, and it has no "
        "time-to-live; call enable_time_to_live(…) on the descriptors, or clear() in on_timer()"
    )


def kept_by_windows(definition: WindowDefinition) -> str:
    """What windows keep for ever."""
    trigger = definition.used_trigger
    if isinstance(definition.assigner, GlobalWindows) and not isinstance(trigger, PurgingTrigger):
        names = names_in(trigger)
        if names is not None and not names & {"PURGE", "FIRE_AND_PURGE"}:
            return "keeps what its one window per key holds for ever; use PurgingTrigger.of(…)"
    return ""
