"""Chains of Python functions over Arrow batches, without Spark."""

from __future__ import annotations

import datetime as dt
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from yarnflow.graph.closures import make_closure
from yarnflow.graph.operators import PythonKind, WindowFunctionKind
from yarnflow.graph.rows import Row
from yarnflow.graph.schema import EVENT_TIME_FIELD, KEY_FIELD, Field, Schema
from yarnflow.operators.functions.elements import MapFunction
from yarnflow.spark.translate.python_chain import (
    ELEMENTS,
    OUTPUT_BATCH_ROWS,
    WINDOW_END,
    WINDOW_START,
    Chain,
    ChainSpec,
    Stage,
    WindowHead,
)

UTC = pa.timestamp("us", tz="UTC")
NUMBER = Schema((Field("value", "bigint"),), scalar=True)
PAIR = Schema((Field("a", "bigint"), Field("b", "string")))
NUMBERS = pa.schema([("value", pa.int64())])
PAIRS = pa.schema([("a", pa.int64()), ("b", pa.string())])


def stage(kind: PythonKind, function: Any, output: Schema = NUMBER) -> Stage:
    return Stage(kind, make_closure(function, "job.py:3"), output)


def run(
    source: Schema, output: pa.Schema, *stages: Stage, batch: pa.RecordBatch, **options: Any
) -> list[Any]:
    made = list(Chain(ChainSpec(source, stages, output, **options))(iter([batch])))
    return [tuple(row.values()) for row in pa.Table.from_batches(made, output).to_pylist()]


def numbers(*values: int | None) -> pa.RecordBatch:
    return pa.record_batch({"value": pa.array(values, pa.int64())})


MAP, FLAT_MAP, FILTER = PythonKind.MAP, PythonKind.FLAT_MAP, PythonKind.FILTER


def test_functions_of_all_kinds_in_one_loop() -> None:
    found = run(
        NUMBER,
        PAIRS,
        stage(MAP, lambda v: v + 1),
        stage(FLAT_MAP, lambda v: range(v)),
        stage(FILTER, lambda v: v != 1),
        stage(MAP, lambda v: (v, str(v)), PAIR),
        stage(MAP, lambda r: (r.a * 2, r["b"]), PAIR),
        batch=numbers(1, 3),
    )
    assert found == [(0, "0"), (0, "0"), (4, "2"), (6, "3")]


def test_nothing_is_materialised_between_functions() -> None:
    seen: list[int] = []

    def endless(v: int) -> Iterator[int]:
        n = 0
        while True:
            yield n
            n += 1

    spec = ChainSpec(NUMBER, (stage(FLAT_MAP, endless), stage(MAP, lambda v: v * 2)), NUMBERS)
    batches = Chain(spec)(iter([numbers(1)]))
    first, second = next(batches), next(batches)
    assert first.num_rows == second.num_rows == OUTPUT_BATCH_ROWS
    assert second.column(0)[0].as_py() == 2 * OUTPUT_BATCH_ROWS
    assert seen == []


def test_many_flat_maps() -> None:
    stages = [stage(FLAT_MAP, lambda v: [v]) for _ in range(40)]
    assert run(NUMBER, NUMBERS, *stages, batch=numbers(7)) == [(7,)]


@dataclass
class Pair:
    a: int
    b: str


Named = namedtuple("Named", "a b")


@pytest.mark.parametrize(
    "record",
    [(1, "x"), [1, "x"], {"b": "x", "a": 1}, Named(1, "x"), Pair(1, "x"), Row(b="x", a=1), Row(1, "x")],
)
def test_forms_of_records(record: Any) -> None:
    assert run(NUMBER, PAIRS, stage(MAP, lambda v: record, PAIR), batch=numbers(0)) == [(1, "x")]
    again = stage(MAP, lambda r: (r.a, r.b), PAIR)
    assert run(NUMBER, PAIRS, stage(MAP, lambda v: record, PAIR), again, batch=numbers(0)) == [(1, "x")]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ((1, 2), r"job.py:3\): field 'b' is declared string, got 2 \(int\)"),
        (("x", "y"), r"field 'a' is declared bigint, got 'x' \(str\)"),
        ((1.5, "y"), r"field 'a' is declared bigint, got 1.5 \(float\)"),
        ((2**70, "y"), r"field 'a' is declared bigint"),
        ((1,), r"job.py:3\): .*1 values"),
        (3, r"a int"),
    ],
)
def test_values_that_do_not_fit(record: Any, message: str) -> None:
    names = {"a": "bigint", "b": "string"}
    with pytest.raises(TypeError, match=message):
        run(NUMBER, PAIRS, stage(MAP, lambda v: record, PAIR), batch=numbers(0), type_names=names)


def test_filters_keep_columns_as_they_are() -> None:
    spec = ChainSpec(NUMBER, (stage(FILTER, lambda v: True),), NUMBERS)
    batch = numbers(1, None)
    (kept,) = Chain(spec)(iter([batch]))
    assert kept.column(0).buffers()[1].address == batch.column(0).buffers()[1].address
    assert run(NUMBER, NUMBERS, stage(FILTER, lambda v: v == 2), batch=numbers(1, 2, 3)) == [(2,)]
    assert run(NUMBER, NUMBERS, stage(FILTER, lambda v: False), batch=numbers(1)) == []


def test_hidden_columns_travel_beside_the_record() -> None:
    output = pa.schema([("value", pa.int64()), (EVENT_TIME_FIELD, UTC), (KEY_FIELD, pa.string())])
    at = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    batch = pa.record_batch(
        {"value": pa.array([1, 2], pa.int64()), EVENT_TIME_FIELD: pa.array([at, None], UTC)}
    )
    key = stage(PythonKind.KEY, lambda v: f"k{v}")
    twice = stage(FLAT_MAP, lambda v: [v, v * 10])
    assert run(NUMBER, output, twice, key, batch=batch) == [
        (1, at, "k1"), (10, at, "k10"), (2, None, "k2"), (20, None, "k20"),
    ]  # fmt: skip
    # nothing changes the record: columns are kept, hidden ones added
    time = stage(PythonKind.TIMESTAMP, lambda v: v * 1000)
    found = run(NUMBER, output, time, key, stage(FILTER, lambda v: v > 1), batch=batch)
    assert found == [(2, dt.datetime(1970, 1, 1, 0, 0, 2, tzinfo=dt.UTC), "k2")]


def test_event_time_must_be_milliseconds() -> None:
    output = pa.schema([("value", pa.int64()), (EVENT_TIME_FIELD, UTC)])
    with pytest.raises(TypeError, match=r"must return the event time as int milliseconds .* got None"):
        run(NUMBER, output, stage(PythonKind.TIMESTAMP, lambda v: None), batch=numbers(1))


def test_values_as_functions_see_them() -> None:
    at = dt.datetime(2020, 1, 1, 12)
    kind = pa.struct([("t", UTC), ("m", pa.map_(pa.string(), pa.list_(UTC)))])
    output = pa.schema([("s", kind), ("d", pa.decimal128(10, 2))])
    schema = Schema((Field("s", "struct<…>"), Field("d", "decimal(10,2)")))
    zoned = at.replace(tzinfo=dt.UTC)
    batch = pa.record_batch(
        {
            "s": pa.array([{"t": zoned, "m": [("k", [zoned])]}, None], kind),
            "d": pa.array([Decimal("1.50")] * 2, output[1].type),
        }
    )

    def check(r: Any) -> Any:
        if r.s is not None:
            assert r.s.t == at and r.s.m == {"k": [at]}
        return r.s, r.d

    found = run(schema, output, stage(MAP, check, schema), batch=batch)
    assert found[0] == ({"t": zoned, "m": [("k", [zoned])]}, Decimal("1.50"))
    assert found[1] == (None, Decimal("1.50"))


def test_function_classes_open_once_per_process() -> None:
    class Opens(MapFunction):
        opened = 0

        def open(self, runtime_context: Any = None) -> None:
            self.opened += 1

        def map(self, value: Any) -> Any:
            return self.opened

    one = stage(MAP, Opens())
    for _ in range(2):
        assert run(NUMBER, NUMBERS, one, batch=numbers(5)) == [(1,)]


def test_window_functions() -> None:
    start, end = dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2020, 1, 1, 1, tzinfo=dt.UTC)
    element = pa.struct([("a", pa.int64()), ("b", pa.string()), (EVENT_TIME_FIELD, UTC)])
    elements = [
        {"a": 2, "b": "y", EVENT_TIME_FIELD: start + dt.timedelta(minutes=2)},
        {"a": 1, "b": "x", EVENT_TIME_FIELD: start + dt.timedelta(minutes=1)},
    ]
    batch = pa.record_batch(
        {
            "__key_0": pa.array(["k"]),
            WINDOW_START: pa.array([start], UTC),
            WINDOW_END: pa.array([end], UTC),
            ELEMENTS: pa.array([elements], pa.list_(element)),
        }
    )
    output = pa.schema([*PAIRS, (EVENT_TIME_FIELD, UTC)])

    def process(key: Any, context: Any, records: Any) -> Any:
        assert context.window().end - context.window().start == 3_600_000
        yield sum(r.a for r in records), key + "".join(r.b for r in records)

    def head(kind: WindowFunctionKind, function: Any) -> WindowHead:
        return WindowHead(kind, make_closure(function, "job.py:4"), ("__key_0",), ("k",), PAIR, PAIR)

    last = end - dt.timedelta(milliseconds=1)
    made = run(PAIR, output, batch=batch, head=head(WindowFunctionKind.PROCESS, process))
    assert made == [(3, "kxy", last)]
    reduce = head(WindowFunctionKind.REDUCE, lambda x, y: (x.a + y.a, x.b + y.b))
    double = stage(MAP, lambda r: (r.a * 2, r.b), PAIR)
    assert run(PAIR, output, double, batch=batch, head=reduce) == [(6, "xy", last)]
