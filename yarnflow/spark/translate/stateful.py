"""Keyed state outside windows: running aggregates and Python reduce functions.

Decides that built-in aggregates are Spark's own and that a Python reduce keeps its
accumulator in a ``transformWithState`` value state.  Both emit, per micro-batch, one record for
each key that changed.  The accumulator is stored pickled: Spark's state rows would shift
timestamps by the worker's time zone.  Flink counterparts: ``StreamGroupedReduceOperator``,
``ValueState``.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import pickle
from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from yarnflow.graph.closures import Closure
from yarnflow.graph.operators import KeyedReduce, RunningAggregate
from yarnflow.graph.rows import row_class
from yarnflow.graph.schema import Field, Schema
from yarnflow.spark.translate.arrow_values import row_maker
from yarnflow.spark.translate.python_chain import PICKLED_COLUMN, named, worker_function
from yarnflow.spark.translate.schemas import quoted, to_arrow, visible_columns
from yarnflow.spark.translate.windows import key_columns

_PROVIDER: Final = "spark.sql.streaming.stateStore.providerClass"
_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_PICKLE_PROTOCOL: Final = 4


def running_aggregate(operator: RunningAggregate, frame: DataFrame) -> DataFrame:
    """Key fields and aggregates over everything seen so far (output mode ``update``)."""
    aggregates = [F.expr(text) for text in operator.aggregates]
    return frame.groupBy(*key_columns(operator.key)).agg(*aggregates)


def keyed_reduce(operator: KeyedReduce, frame: DataFrame, scalar: bool) -> DataFrame:
    """One column of pickled accumulators (output mode ``update``)."""
    names = visible_columns(frame)
    fields = [f for f in frame.schema.fields if f.name in names]
    keys = [f"__key_{n}" for n in range(len(operator.key.names))]
    keyed = frame.select(
        *[F.expr(text).alias(name) for text, name in zip(operator.key.expressions, keys, strict=True)],
        *[F.col(quoted(name)) for name in names],
    )
    processor = ReduceProcessor(
        operator.closure,
        tuple(names),
        scalar,
        to_arrow(type(frame.schema)(fields)),
        len(keys),
    )
    return keyed.groupBy(*keys).transformWithState(
        statefulProcessor=processor,
        outputStructType=f"{PICKLED_COLUMN} binary",
        outputMode="Update",
        timeMode="None",
    )


def use_rocksdb(spark: SparkSession) -> None:
    """``transformWithState`` runs on RocksDB only, whatever other state uses."""
    spark.conf.set(_PROVIDER, _ROCKSDB)


class ReduceProcessor(StatefulProcessor):
    """Folds a micro-batch's records of one key into its accumulator.

    Parameters
    ----------
    closure : Closure
        ``f(accumulator, record) -> accumulator``.
    names : tuple of str
        The record's fields.
    scalar : bool
        The stream is one of single values.
    arrow : pyarrow.Schema
        The record's types.
    skip : int
        Key columns before the record's.
    """

    def __init__(
        self, closure: Closure, names: tuple[str, ...], scalar: bool, arrow: pa.Schema, skip: int
    ) -> None:
        self._closure = closure
        self._names = names
        self._scalar = scalar
        self._arrow = arrow
        self._skip = skip

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark calls this once per task."""
        self._state = handle.getValueState("accumulator", "accumulator binary")
        self._function = worker_function(self._closure)
        self._readers = [spark_value_reader(field.type) for field in self._arrow]
        self._make = row_class(self._names)._make
        if not self._scalar:
            where = f"{self._closure.name} ({self._closure.origin})"
            self._function = named(self._function, row_maker(Schema(tuple(map(Field, self._names))), where))

    def handleInputRows(
        self, key: Any, rows: Iterator[Row], timerValues: Any
    ) -> Iterator[Row]:  # noqa: N802, N803
        """Spark calls this once per key and micro-batch."""
        records: Iterator[Any] = map(self._record, rows)
        if self._state.exists():
            records = itertools.chain((self._restored(),), records)
        accumulator = functools.reduce(self._function, records)
        # values only: a Row's class may look different after an upgrade
        pickled = pickle.dumps(accumulator if self._scalar else tuple(accumulator), _PICKLE_PROTOCOL)
        self._state.update((pickled,))
        yield Row(**{PICKLED_COLUMN: pickled})

    def close(self) -> None:
        pass

    def _record(self, row: Row) -> Any:
        if self._scalar:
            return self._readers[0](row[self._skip])
        values = tuple(row)[self._skip :]
        return self._make(read(value) for read, value in zip(self._readers, values, strict=True))

    def _restored(self) -> Any:
        # written by this class into the job's own state, never from outside
        stored = self._state.get()
        assert stored is not None, "checked by the caller"
        plain = pickle.loads(bytes(stored[0]))  # noqa: S301
        return plain if self._scalar else self._make(plain)


def _utc_naive(value: Any) -> Any:
    if value is None or value.tzinfo is None:
        return value
    return value.astimezone(datetime.UTC).replace(tzinfo=None)


def spark_value_reader(kind: pa.DataType) -> Callable[[Any], Any]:
    """From what the row form of ``transformWithState`` gives to what functions see."""
    if pa.types.is_timestamp(kind):
        return _utc_naive
    if pa.types.is_list(kind):
        element = spark_value_reader(kind.value_type)
        return lambda value: None if value is None else [element(v) for v in value]
    if pa.types.is_struct(kind):
        readers = [
            (kind.field(i).name, spark_value_reader(kind.field(i).type)) for i in range(kind.num_fields)
        ]
        make = row_class(tuple(name for name, _ in readers))._make
        return lambda value: None if value is None else make(read(value[name]) for name, read in readers)
    if pa.types.is_map(kind):
        key, item = spark_value_reader(kind.key_type), spark_value_reader(kind.item_type)

        def mapping(value: Any) -> Any:
            if value is None:
                return None
            pairs = value.items() if isinstance(value, dict) else value
            return {key(k): item(v) for k, v in pairs}

        return mapping
    return lambda value: value
