"""The table machine itself, on a machine of two states."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import pytest

from yarnflow.core.fsm import Machine, Row, Timestamps, on, stamped, story_of
from yarnflow.errors import InvariantViolated


class Light(Enum):
    OFF = "OFF"
    ON = "ON"


@dataclass(frozen=True)
class Switched:
    at_ms: int


@dataclass(frozen=True)
class Lamp:
    state: Light
    timestamps: Timestamps[Light]


DARK = Lamp(Light.OFF, ((Light.OFF, 0),))
GLOWING = Lamp(Light.OFF, ((Light.OFF, 1),))


def flip(model: Lamp, event: Switched) -> tuple[Lamp, tuple[str, ...]]:
    return Lamp(Light.ON, stamped(model.timestamps, Light.ON, event.at_ms)), ("lit",)


def machine(*rows: Row[Lamp, Switched, str]) -> Machine[Lamp, Switched, str]:
    return Machine(
        name="Light",
        states=Light,
        initial=Light.OFF,
        terminal={Light.ON},
        id_of=lambda model: "hall",
        rows=rows,
        contradiction=lambda model: "it glows in the dark" if model == GLOWING else "",
    )


def test_a_step_returns_model_and_effects() -> None:
    light = machine(on(Light.OFF, Switched, flip, Light.ON, note="dark"))
    assert light.step(DARK, Switched(7)) == (Lamp(Light.ON, ((Light.OFF, 0), (Light.ON, 7))), ("lit",))
    assert light.accepts(Light.OFF, Switched) and not light.accepts(Light.ON, Switched)
    assert light.events == (Switched,)


def test_a_function_may_not_leave_its_targets() -> None:
    light = machine(on(Light.OFF, Switched, flip, Light.OFF))
    with pytest.raises(InvariantViolated, match="Light hall: Switched led from OFF to ON, allowed: OFF"):
        light.step(DARK, Switched(7))


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (Lamp(Light.ON, ()), "the last timestamp is not of state ON"),
        (Lamp(Light.ON, ((Light.ON, 1), (Light.OFF, 2))), "the last timestamp is not of state ON"),
        (GLOWING, "it glows in the dark"),
    ],
)
def test_a_model_that_contradicts_itself_is_told(model: Lamp, why: str) -> None:
    light = machine()
    light.check(DARK)
    with pytest.raises(InvariantViolated, match=f"^Light hall: {why}$"):
        light.check(model)


def test_two_rows_for_one_event_are_refused() -> None:
    row: Row[Lamp, Switched, str] = on(Light.OFF, Switched, flip, Light.ON)
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
