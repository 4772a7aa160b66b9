"""Key groups: the same in every process, the same for equal keys, spread over all groups."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from yarnflow.errors import InvalidKey
from yarnflow.graph.rows import Row
from yarnflow.operators.task.key_groups import KeyGroups, key_group, number_key_groups, subtask_of_group

ROOT = Path(__file__).resolve().parents[3]


class Color(Enum):
    RED = "r"
    BLUE = "b"


class Level(IntEnum):
    LOW = 1


@dataclass(frozen=True)
class Place:
    city: str
    number: int


@dataclass
class Mutable:
    city: str


class Pair(NamedTuple):
    left: str
    right: int


#: source of a key, so that other processes can make it too
KEYS = [
    "None", "0", "-1", "2**70", "True", "0.5", "'text'", "'\\ud800'", "b'bytes'", "('a', 1, None)", "()",
    "frozenset({'a', 'b', 'c'})", "date(2026, 1, 2)", "datetime(2026, 1, 2, 3, 4, 5, 6)", "time(1, 2, 3)",
    "datetime(2026, 1, 2, tzinfo=timezone.utc)", "timedelta(days=-1)", "Decimal('1.25')",
    "Row(word='a', count=2)", "UUID(int=5)",
]  # fmt: skip

PROGRAM = f"""
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID
from yarnflow.graph.rows import Row
from yarnflow.operators.task.key_groups import key_group
print([key_group(key, 10_000) for key in ({', '.join(KEYS)})])
"""


def test_other_processes_find_the_same_groups() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    names = {"date": date, "datetime": datetime, "time": time, "timedelta": timedelta, "timezone": timezone,
             "Decimal": Decimal, "Row": Row, "UUID": UUID}  # fmt: skip
    assert printed == {f"{[key_group(eval(key, names), 10_000) for key in KEYS]}\n"}


@pytest.mark.parametrize(
    "equal",
    [
        (1, 1.0, True, Decimal(1), Fraction(1), Level.LOW),
        (0.5, Decimal("0.5"), Fraction(1, 2)),
        (0.0, -0.0),
        (("a", 1), Row(word="a", count=1), Row("a", 1.0), Pair("a", 1)),
        (Place("x", 1), Place("x", 1)),
        (frozenset("abc"), frozenset("cba")),
        (
            datetime(2026, 1, 1, 12, tzinfo=UTC),
            datetime(2026, 1, 1, 14, tzinfo=timezone(timedelta(hours=2))),
        ),
        (time(12, tzinfo=UTC), time(14, tzinfo=timezone(timedelta(hours=2)))),
        (datetime(2026, 1, 1), datetime(2026, 1, 1, fold=1)),
    ],
)
def test_equal_keys_have_one_group(equal: tuple[Any, ...]) -> None:
    assert len(set(equal)) == 1
    assert len({key_group(key, 2**31) for key in equal}) == 1


PARTS = st.one_of(st.none(), st.integers(), st.floats(allow_nan=False), st.text(), st.binary())


@given(st.one_of(PARTS, st.tuples(PARTS, PARTS)), st.integers(1, 40_000))
def test_a_group_is_one_of_the_groups(key: Any, groups: int) -> None:
    assert 0 <= key_group(key, groups) < groups
    assert KeyGroups(groups)[key] == key_group(key, groups)


@pytest.mark.parametrize(
    "keys",
    [
        list(range(10_000)),
        [f"user-{n}" for n in range(10_000)],
        [n * 128 for n in range(10_000)],
        [("city", n) for n in range(10_000)],
        [n / 7 for n in range(10_000)],
    ],
)
def test_keys_are_spread_over_all_groups(keys: list[Any]) -> None:
    counts = Counter(key_group(key, 16) for key in keys)
    assert len(counts) == 16 and max(counts.values()) < 2 * min(counts.values())


def test_parts_of_a_key_do_not_change_places() -> None:
    assert key_group(("a", "b"), 2**31) != key_group(("b", "a"), 2**31)
    assert key_group(Color.RED, 2**31) != key_group(Color.BLUE, 2**31)


@pytest.mark.parametrize(
    "key, said",
    [
        (object(), "an object of type object cannot be a key: its hash is not the same"),
        (Mutable("x"), "an object of type Mutable cannot be a key"),
        (("a", object()), "an object of type object cannot be a key"),
        (float("nan"), "NaN cannot be a key"),
        (len, "builtin_function_or_method cannot be a key"),
    ],
)
def test_what_cannot_be_a_key_is_said(key: Any, said: str) -> None:
    with pytest.raises(InvalidKey, match=said):
        key_group(key, 4)


def test_remembered_groups_are_forgotten_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("yarnflow.operators.task.key_groups._REMEMBERED", 10)
    groups = KeyGroups(4)
    assert [groups[key] for key in range(100)] == [key_group(key, 4) for key in range(100)]
    assert len(groups) <= 10


def test_subtasks_have_ranges_of_groups() -> None:
    assert [subtask_of_group(group, 3, 8) for group in range(8)] == [0, 0, 0, 1, 1, 1, 2, 2]
    assert [subtask_of_group(group, 4, 4) for group in range(4)] == [0, 1, 2, 3]


@given(st.lists(st.integers(0, sys.hash_info.modulus - 1), min_size=1), st.integers(1, 2**15))
def test_many_numbers_at_once_have_the_groups_each_of_them_has(keys: list[int], groups: int) -> None:
    found = number_key_groups(np.array(keys, np.int64), groups)
    assert found is not None
    assert found.tolist() == [key_group(key, groups) for key in keys]


@pytest.mark.parametrize("key", [-1, sys.hash_info.modulus, 2**63 - 1, 1.5])
def test_numbers_whose_hash_is_another_number_are_left_to_python(key: float) -> None:
    assert number_key_groups(np.array([1, key]), 128) is None
