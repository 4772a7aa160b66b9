"""What functions read of a record."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from yarnflow.operators.functions.fields_read import fields_read


def _several(record: Any) -> Any:
    if record.price > 3 and record.channel:
        return record.auction, [price for price in (record.price, 1)]
    return record.bidder


def _generator(record: Any) -> Any:
    for _ in range(3):
        yield record.price


def _assigned(record: Any) -> Any:
    record = record.price
    return record


def _seen_inside(record: Any) -> Any:
    return [record.price for _ in range(3)]


def _handed_on(record: Any) -> Any:
    return record.price, str(record)


def _by_name(record: Any) -> Any:
    return record.price, locals()


def _chosen(record: Any) -> Any:
    return (record if record.price else record).channel


def _deleted(record: Any) -> Any:
    price = record.price
    del record
    return price


def _changed(record: Any) -> Any:
    record.price = 3
    return record.price


class Function:
    def map(self, record: Any) -> Any:
        return record.price


@pytest.mark.parametrize(
    ("function", "fields"),
    [
        (lambda record: record.price, ("price",)),
        (lambda record: record.inner.price, ("inner",)),
        (lambda record: 1, ()),
        (lambda record, other=3: (record.b, record.a, other), ("a", "b")),
        (_several, ("auction", "bidder", "channel", "price")),
        (_generator, ("price",)),
        (lambda record: record, None),
        (lambda record: record[0], None),
        (lambda record: record["price"], None),
        (lambda record: record.as_dict(), None),
        (lambda record: {**record.price, "all": record}, None),
        (lambda record: lambda: record.price, None),
        (lambda *records: records[0].price, None),
        (_assigned, None),
        (_handed_on, None),
        (_by_name, None),
        (_chosen, None),
        (_deleted, None),
        (_changed, None),
        (Function().map, None),
        (functools.partial(lambda more, record: record.price, 3), None),
        (len, None),
        (Function(), None),
    ],
)
def test_fields(function: Callable[..., Any], fields: tuple[str, ...] | None) -> None:
    assert fields_read(function) == fields


def test_what_functions_inside_see() -> None:
    # from Python 3.12 on a list's loop is no function inside
    assert fields_read(_seen_inside) in (None, ("price",))
