"""What the program gets for an element, and how elements are put into payloads."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from yarnflow.api.common import Row, Types
from yarnflow.graph.type_info import TypeInfo
from yarnflow.operators.types import collected
from yarnflow.operators.types.collected import collector, payloads

ROUNDED = 0.10000000149011612


@pytest.mark.parametrize(
    ("element_type", "value", "expected"),
    [
        (Types.FLOAT(), ROUNDED, 0.1),
        (Types.FLOAT(), float("inf"), float("inf")),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"a\xff", [97, -1]),
        (Types.LIST(Types.FLOAT()), [ROUNDED, None], [0.1, None]),
        (Types.MAP(Types.STRING(), Types.FLOAT()), {"a": ROUNDED}, {"a": 0.1}),
        (Types.TUPLE([Types.STRING(), Types.FLOAT()]), ("a", ROUNDED), ("a", 0.1)),
        (Types.ROW_NAMED(["x"], [Types.FLOAT()]), Row(x=ROUNDED), Row(x=0.1)),
        (Types.FLOAT(), None, None),
    ],
)
def test_what_differs_from_what_functions_get(element_type: TypeInfo, value: Any, expected: Any) -> None:
    convert = collector(element_type)
    assert convert is not None
    assert convert(value) == expected


@pytest.mark.parametrize(
    "element_type",
    [
        Types.PICKLED_BYTE_ARRAY(),
        Types.DOUBLE(),
        Types.LIST(Types.INT()),
        Types.MAP(Types.STRING(), Types.INT()),
        Types.TUPLE([Types.STRING(), Types.INT()]),
        Types.ROW([Types.STRING()]),
    ],
)
def test_most_elements_stay_as_they_are(element_type: TypeInfo) -> None:
    assert collector(element_type) is None


def test_payloads_have_limited_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collected, "PAYLOAD_ELEMENTS", 4)
    monkeypatch.setattr(collected, "PAYLOAD_BYTES", 1_000)
    values = ["a", "b" * 900, "c" * 900, "d", "e" * 5_000, "f"]
    found = list(payloads(values, pickle.dumps))
    assert [element for payload, _ in found for element in pickle.loads(payload)] == values
    assert [count for _, count in found] == [2, 2, 1, 1]
    assert list(payloads([], pickle.dumps)) == []
