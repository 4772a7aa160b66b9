"""The table machine itself, on a machine of two states."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pytest

from yarnflow.core.fsm import Machine, Row, on, stamped, story_of
from yarnflow.errors import InvariantViolated


class Light(Enum):
    OFF = "OFF"
    ON = "ON"


@dataclass(frozen=True)
class Switched:
    at_ms: int


Model = tuple[Light, int]


def flip(model: Model, event: Switched) -> tuple[Model, tuple[str, ...]]:
    return (Light.ON, event.at_ms), ("lit",)


def machine(*rows: Row[Model, Switched, str]) -> Machine[Model, Switched, str]:
    return Machine(
        name="Light",
        states=Light,
        initial=Light.OFF,
        terminal={Light.ON},
        state_of=lambda model: model[0],
        id_of=lambda model: "hall",
        story=lambda model: "",
        rows=rows,
    )


def test_a_step_returns_model_and_effects() -> None:
    light = machine(on(Light.OFF, Switched, flip, Light.ON, note="dark"))
    assert light.step((Light.OFF, 0), Switched(7)) == ((Light.ON, 7), ("lit",))
    assert light.accepts(Light.OFF, Switched) and not light.accepts(Light.ON, Switched)
    assert light.events == (Switched,)


def test_a_function_may_not_leave_its_targets() -> None:
    light = machine(on(Light.OFF, Switched, flip, Light.OFF))
    with pytest.raises(InvariantViolated, match="Light hall: Switched led from OFF to ON, allowed: OFF"):
        light.step((Light.OFF, 0), Switched(7))


def test_two_rows_for_one_event_are_refused() -> None:
    row: Row[Model, Switched, str] = on(Light.OFF, Switched, flip, Light.ON)
    with pytest.raises(InvariantViolated, match="two rows for OFF on Switched"):
        machine(row, row)


def test_documents() -> None:
    light = machine(on(Light.OFF, Switched, flip, Light.ON, note="dark"))
    assert light.mermaid().splitlines()[1:] == [
        "    [*] --> OFF",
        "    OFF --> ON: Switched",
        "    ON --> [*]",
    ]
    assert light.markdown().splitlines()[2:] == [
        "| OFF | Switched | ON | dark |",
        "| ON | — | — | terminal |",
    ]


def test_stamps_keep_the_last_entry_in_order() -> None:
    times = stamped(stamped(stamped((), Light.OFF, 1), Light.ON, 2), Light.OFF, 3)
    assert times == ((Light.ON, 2), (Light.OFF, 3))
    assert story_of(times) == "ON@2 → OFF@3"
