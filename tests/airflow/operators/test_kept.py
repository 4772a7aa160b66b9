"""What a task keeps for its next try."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from yarnflow.airflow.operators.kept import Kept


@dataclass(frozen=True)
class Things:
    names: tuple[str, ...] = ()
    count: int = 0


def test_it_is_there_until_it_is_forgotten(context: dict[str, Any]) -> None:
    kept = Kept(context, "things", Things)
    assert kept.load() is None
    kept.save(Things(("a", "b"), 2))
    assert Kept(context, "things", Things).load() == Things(("a", "b"), 2)
    assert Kept(context, "others", Things).load() is None
    kept.forget()
    assert kept.load() is None


@pytest.mark.parametrize("found", ["text", 3, [1]])
def test_what_cannot_be_read_counts_as_nothing(context: dict[str, Any], found: Any) -> None:
    context["task_state_store"].set("things", found)
    assert Kept(context, "things", Things).load() is None


def test_what_another_version_has_kept_besides_is_left_out(context: dict[str, Any]) -> None:
    context["task_state_store"].set("things", {"names": ["a"], "size": 1})
    assert Kept(context, "things", Things).load() == Things(("a",))


def test_nothing_is_kept_where_there_is_no_store(context: dict[str, Any]) -> None:
    del context["task_state_store"]
    kept = Kept(context, "things", Things)
    kept.save(Things(count=1))
    assert kept.load() is None
    kept.forget()
