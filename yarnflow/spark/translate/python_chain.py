"""A chain of Python functions as one ``mapInArrow``.

Runs in Spark's Python workers.  Decides how the functions of a chain are fused into one loop,
so that nothing is materialised between them, and how hidden columns (event time, key) travel
beside the records.  Never touches a SparkSession; never checks types between two functions
of a chain, only of what leaves it.  Flink counterpart: ``ChainedOperator`` and PyFlink's
operation generation.
"""

from __future__ import annotations

import functools
import itertools
import operator
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from yarnflow.graph.closures import Closure, load_closure
from yarnflow.graph.operators import PythonKind, WindowFunctionKind
from yarnflow.graph.rows import row_class
from yarnflow.graph.schema import EVENT_TIME_FIELD, KEY_FIELD, Schema
from yarnflow.operators.functions.base import open_function
from yarnflow.operators.process.adapters import window_context
from yarnflow.spark.translate.arrow_values import (
    ColumnBuilder,
    column_values,
    microseconds,
    records,
    row_maker,
    timestamps,
)

#: most records in one output batch
OUTPUT_BATCH_ROWS: Final = 10_000
#: column of pickled records between KeyedReduce and the chain after it
PICKLED_COLUMN: Final = "__record"
#: columns of a window's row before its function ran
WINDOW_START, WINDOW_END, ELEMENTS = "__window_start", "__window_end", "__elements"
#: Python nests at most 20 blocks; a chain with more flat_maps becomes several generators
_MAX_NESTED_LOOPS: Final = 15
_CHANGES_RECORDS: Final = (PythonKind.MAP, PythonKind.FLAT_MAP)


@dataclass(frozen=True, slots=True)
class Stage:
    """One Python function of a chain."""

    kind: PythonKind
    closure: Closure
    #: record fields after the function, hidden ones left out
    output: Schema


@dataclass(frozen=True, slots=True)
class WindowHead:
    """The chain starts with a Python window function; input is one row per key and window."""

    kind: WindowFunctionKind
    closure: Closure
    #: columns of the key in the input, and what the function calls them
    key_columns: tuple[str, ...]
    key_names: tuple[str, ...]
    #: fields of the elements
    element: Schema
    #: fields of the records the window function makes
    output: Schema


@dataclass(frozen=True, slots=True)
class PickledHead:
    """The chain's input are pickled records made by a KeyedReduce."""

    closure: Closure
    output: Schema


@dataclass(frozen=True, slots=True)
class ChainSpec:
    """What one ``mapInArrow`` does; travels to the workers."""

    #: fields of the records that come in, hidden ones left out
    input: Schema
    stages: tuple[Stage, ...]
    #: every column that goes out: record fields, then hidden columns
    output: pa.Schema
    head: WindowHead | PickledHead | None = None
    #: Spark type text of the output columns, for messages
    type_names: dict[str, str] = field(default_factory=dict)

    @property
    def keeps_records(self) -> bool:
        """No function changes a record: columns are kept, rows are picked."""
        return self.head is None and all(stage.kind not in _CHANGES_RECORDS for stage in self.stages)

    @property
    def record_schema(self) -> Schema:
        """Fields of the records that go out."""
        for stage in reversed(self.stages):
            if stage.kind in _CHANGES_RECORDS:
                return stage.output
        return self.input if self.head is None else self.head.output

    @property
    def maker(self) -> str:
        """The function that made the records that go out, for messages."""
        for stage in reversed(self.stages):
            if stage.kind in _CHANGES_RECORDS:
                return _called(stage.closure)
        return "the input" if self.head is None else _called(self.head.closure)


@functools.lru_cache(maxsize=256)
def worker_function(closure: Closure) -> Callable[..., Any]:
    """Load a function, once per worker process: workers outlive tasks and micro-batches."""
    function = load_closure(closure)
    open_function(function, None)
    return function


def named(function: Callable[..., Any], row: Callable[[Any], Any]) -> Callable[..., Any]:
    """A reduce function whose result is a row again, whatever form the user gave it."""
    return lambda accumulator, record: row(function(accumulator, record))


def _called(closure: Closure) -> str:
    return f"{closure.name} ({closure.origin})"


class Chain:
    """The function given to ``mapInArrow``: batches in, batches out.

    Parameters
    ----------
    spec : ChainSpec
        What to run.
    """

    def __init__(self, spec: ChainSpec) -> None:
        self.spec = spec

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _Run(self.spec).batches(batches)


class _Run:
    """One task's work: functions loaded, loop compiled."""

    def __init__(self, spec: ChainSpec) -> None:
        self.spec = spec
        columns = spec.output.names
        kinds = [stage.kind for stage in spec.stages]
        #: columns some function of this chain sets; other hidden ones come from the input
        self.set_here = {
            column
            for kind, column in ((PythonKind.TIMESTAMP, EVENT_TIME_FIELD), (PythonKind.KEY, KEY_FIELD))
            if kind in kinds
        }
        #: variables beside the record, in the order of the generated tuples
        self.beside = [v for v, column in (("et", EVENT_TIME_FIELD), ("key", KEY_FIELD)) if column in columns]
        self.keep = spec.keeps_records
        if self.keep:
            self.beside.append("i")
        self.builder = ColumnBuilder(spec.output, spec.record_schema, spec.maker, spec.type_names)
        self.read = self._reader()
        self.loop = self._compile()

    def _reader(self) -> Callable[[pa.RecordBatch], Iterator[Any]]:
        head = self.spec.head
        if isinstance(head, WindowHead):
            function = worker_function(head.closure)
            return functools.partial(
                _window_records,
                head=head,
                function=function,
                beside=self.beside,
                shaped=bool(self.spec.stages),
            )
        if isinstance(head, PickledHead):
            shape = None if head.output.scalar else row_maker(head.output, _called(head.closure))

            def unpickled(batch: pa.RecordBatch) -> Iterator[Any]:
                # made by our own KeyedReduce one operator before, never from outside
                found = map(pickle.loads, batch.column(PICKLED_COLUMN).to_pylist())  # noqa: S301
                return self._with_beside(found if shape is None else map(shape, found), batch)

            return unpickled
        return lambda batch: self._with_beside(records(batch, self.spec.input), batch)

    def _with_beside(self, found: Iterator[Any], batch: pa.RecordBatch) -> Iterator[Any]:
        """Each record with its hidden values (and, where rows are kept, its number)."""
        if not self.beside:
            return found
        names = batch.schema.names
        beside: list[Iterator[Any]] = []
        for variable in self.beside:
            if variable == "i":
                beside.append(itertools.count())
            elif variable == "et" and EVENT_TIME_FIELD in names:
                beside.append(iter(microseconds(batch.column(EVENT_TIME_FIELD))))
            elif variable == "key" and KEY_FIELD in names and KEY_FIELD not in self.set_here:
                beside.append(iter(column_values(batch.column(KEY_FIELD))))
            else:
                beside.append(itertools.repeat(None))
        return zip(found, *beside, strict=False)

    def _compile(self) -> Callable[[Iterator[Any]], Iterator[Any]]:
        """Write the chain down as nested loops and compile that."""
        stages = self.spec.stages
        changing = [n for n, stage in enumerate(stages) if stage.kind in _CHANGES_RECORDS]
        item = ", ".join(["v", *self.beside])
        names: dict[str, Any] = {}
        bodies: list[list[str]] = [[]]
        depth = 2

        def line(text: str) -> None:
            bodies[-1].append("    " * depth + text)

        for n, stage in enumerate(stages):
            names[f"f{n}"] = worker_function(stage.closure)
            # What goes on to a function is a row with names; what leaves the chain is the builder's.
            leaves = bool(changing) and n == changing[-1] and n == len(stages) - 1
            shaped = stage.kind in _CHANGES_RECORDS and not stage.output.scalar and not leaves
            if shaped:
                names[f"s{n}"] = row_maker(stage.output, _called(stage.closure))
            if stage.kind is PythonKind.MAP:
                line(f"v = s{n}(f{n}(v))" if shaped else f"v = f{n}(v)")
            elif stage.kind is PythonKind.FILTER:
                line(f"if not f{n}(v): continue")
            elif stage.kind is PythonKind.KEY:
                line(f"key = f{n}(v)")
            elif stage.kind is PythonKind.TIMESTAMP:
                names[f"t{n}"] = functools.partial(_event_time_us, closure=stage.closure)
                line(f"et = t{n}(f{n}(v))")
            else:
                if depth == 2 + _MAX_NESTED_LOOPS:
                    line(f"yield {item}")
                    bodies.append([])
                    depth = 2
                line(f"made{depth} = f{n}(v)")
                line(f"for v in () if made{depth} is None else made{depth}:")
                depth += 1
                if shaped:
                    line(f"v = s{n}(v)")
        line(f"yield {item}")
        text = "".join(
            f"def loop{n}(source):\n    for {item} in source:\n" + "\n".join(body) + "\n"
            for n, body in enumerate(bodies)
        )
        exec(compile(text, "<yarnflow chain>", "exec"), names)  # noqa: S102 - made above of fixed words only
        loops = [names[f"loop{n}"] for n in range(len(bodies))]
        return lambda items: functools.reduce(lambda source, loop: loop(source), loops, items)

    # --- batches --------------------------------------------------------------

    def batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run over a partition."""
        if self.keep:
            for batch in batches:
                yield from self._kept(batch)
            return
        items = self.loop(itertools.chain.from_iterable(map(self.read, batches)))
        while chunk := list(itertools.islice(items, OUTPUT_BATCH_ROWS)):
            if not self.beside:
                yield self.builder.batch(chunk, {})
                continue
            made, *beside = zip(*chunk, strict=True)
            yield self.builder.batch(made, self._hidden(dict(zip(self.beside, beside, strict=True))))

    def _hidden(self, beside: Mapping[str, Sequence[Any]]) -> dict[str, pa.Array]:
        found: dict[str, pa.Array] = {}
        if "et" in beside:
            found[EVENT_TIME_FIELD] = timestamps(beside["et"])
        if "key" in beside:
            found[KEY_FIELD] = self.builder.array(KEY_FIELD, beside["key"])
        return found

    def _kept(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Run functions that only look at records; take the rows they keep."""
        items = list(self.loop(self.read(batch)))
        if not items:
            return
        _, *values = zip(*items, strict=True)
        beside = dict(zip(self.beside, values, strict=True))
        rows = beside.pop("i")
        kept = batch if len(rows) == batch.num_rows else batch.take(pa.array(rows, pa.int64()))
        hidden = {n: a for n, a in self._hidden(beside).items() if n in self.set_here}
        arrays = [
            hidden[f.name] if f.name in hidden else _as_type(kept.column(f.name), f.type)
            for f in self.spec.output
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=self.spec.output)


def _as_type(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)


def _event_time_us(at_ms: Any, closure: Closure) -> int:
    try:
        return operator.index(at_ms) * 1000
    except TypeError:
        raise TypeError(
            f"{_called(closure)} must return the event time as int milliseconds since the epoch, "
            f"got {at_ms!r} ({type(at_ms).__name__})"
        ) from None


def _window_records(
    batch: pa.RecordBatch, head: WindowHead, function: Callable[..., Any], beside: list[str], shaped: bool
) -> Iterator[Any]:
    """Call the window function for every row of key and window; yield what it makes."""
    keys = [list(column_values(batch.column(name))) for name in head.key_columns]
    if len(keys) == 1:
        key_values: Iterator[Any] = iter(keys[0])
    elif keys:
        key_values = map(row_class(head.key_names)._make, zip(*keys, strict=True))
    else:
        key_values = itertools.repeat(None)
    rows = None if head.output.scalar else row_maker(head.output, _called(head.closure))
    if head.kind is WindowFunctionKind.REDUCE and rows is not None:
        function = named(function, rows)
    shape = rows if shaped else None
    starts, ends = microseconds(batch.column(WINDOW_START)), microseconds(batch.column(WINDOW_END))
    lists = batch.column(ELEMENTS)
    for row, (key, start_us, end_us) in enumerate(zip(key_values, starts, ends, strict=False)):
        if start_us is None or end_us is None:
            continue
        elements = _elements(lists[row].values, head.element)
        if head.kind is WindowFunctionKind.REDUCE:
            made: Iterator[Any] = iter((functools.reduce(function, elements),))
        else:
            result = function(key, window_context(start_us // 1000, end_us // 1000), elements)
            made = iter(()) if result is None else iter(result)
        if shape is not None:
            made = map(shape, made)
        if not beside:
            yield from made
        else:
            # a window's results carry its last millisecond, as in Flink
            values = tuple({"et": end_us - 1000}.get(variable) for variable in beside)
            yield from ((v, *values) for v in made)


def _elements(structs: pa.StructArray, schema: Schema) -> list[Any]:
    """A window's records, by event time (records of one time in no particular order)."""
    kind = structs.type
    order = pc.sort_indices(structs.field(kind.get_field_index(EVENT_TIME_FIELD)))
    structs = structs.take(order)
    columns = [column_values(structs.field(kind.get_field_index(name))) for name in schema.names]
    if schema.scalar:
        return list(columns[0])
    return list(map(row_class(schema.names)._make, zip(*columns, strict=True)))
