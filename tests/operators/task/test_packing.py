"""Elements as columns: what comes back is what was added, by group and in order."""

from __future__ import annotations

import math
import pickle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from yarnflow.graph.type_info import BasicType, BasicTypeInfo, TupleTypeInfo
from yarnflow.operators.task.packing import GroupColumns, unpacked

LONG = BasicTypeInfo(BasicType.LONG)
PAIRS = TupleTypeInfo((LONG, LONG))

#: as they are after their conversion to PAIRS of anything: what a column may hold
anything = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.lists(st.integers(), max_size=2),
    st.tuples(st.integers(), st.integers()),
)
one_kind = st.sampled_from([st.integers(0, 9), st.floats(allow_nan=False), st.booleans(), anything])
chunks = st.lists(
    one_kind.flatmap(
        lambda values: st.tuples(
            st.lists(st.tuples(st.integers(0, 3), values, values, st.integers(0, 9)), min_size=1),
            st.booleans(),
        )
    ),
    min_size=1,
    max_size=4,
)


def taken(columns: GroupColumns) -> dict[int, tuple[list[Any], list[Any] | None, list[Any]]]:
    found = {}
    for group, *packed in columns.take():
        values, times, keys = pickle.loads(pickle.dumps(packed))
        assert group not in found
        found[group] = unpacked(values), None if times is None else unpacked(times), unpacked(keys)
    assert columns.empty
    return found


@given(chunks, st.booleans())
def test_each_group_gets_its_elements_in_order(
    chunks: list[tuple[list[tuple[int, Any, Any, int]], bool]], tuples: bool
) -> None:
    columns = GroupColumns(PAIRS if tuples else None)
    expected: dict[int, tuple[list[Any], list[Any], list[Any]]] = {}
    for elements, timed in chunks:
        groups = [group for group, _, _, _ in elements]
        values = [(first, second) for _, first, second, _ in elements]
        keys = [second for _, _, second, _ in elements]
        times: list[int | None] = [time or None for *_, time in elements]
        columns.add(groups, values, times if timed else None, keys)
        for group, value, time, key in zip(groups, values, times, keys, strict=True):
            wanted = expected.setdefault(group, ([], [], []))
            wanted[0].append(value)
            wanted[1].append(time if timed else None)
            wanted[2].append(key)
    found = taken(columns)
    any_timed = any(timed for _, timed in chunks)
    # repr: True is no 1, and 1 no 1.0
    assert {group: repr(one) for group, one in found.items()} == {
        group: repr((values, times if any_timed else None, keys))
        for group, (values, times, keys) in expected.items()
    }


def test_not_a_number_and_minus_zero_come_back() -> None:
    columns = GroupColumns(None)
    columns.add([0, 0], [math.nan, -0.0], None, [1, 1])
    ((first, second), _, _) = taken(columns)[0]
    assert math.isnan(first)
    assert math.copysign(1, second) == -1


def test_columns_that_were_read_before_are_not_read_again() -> None:
    columns = GroupColumns(PAIRS)
    columns.add([0, 1, 0], [], None, ["a", "b", "a"], [[1, 2, 3], [4, None, 6]])
    assert taken(columns) == {0: ([(1, 4), (3, 6)], None, ["a", "a"]), 1: ([(2, None)], None, ["b"])}
