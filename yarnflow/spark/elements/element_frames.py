"""The frames of a query of elements: sources, levels, and what each sink gets.

Decides how elements begin as columns and end as columns; levels are planned by
:mod:`yarnflow.operators.task.planner`.
"""

from __future__ import annotations

import functools
import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from yarnflow.errors import UnsupportedGraph
from yarnflow.graph.closures import not_installed
from yarnflow.graph.connectors.kafka import KafkaSource
from yarnflow.graph.connectors.rabbitmq import RabbitMqSource
from yarnflow.graph.connectors.sinks import CollectSink, DiscardSink, PrintSink
from yarnflow.graph.job_graph import StreamNode
from yarnflow.graph.schema import EVENT_TIME_FIELD, VALUE_FIELD, Schema
from yarnflow.graph.type_info import TypeInfo
from yarnflow.operators.elements import Chunk
from yarnflow.operators.task.blocks import ALL_GROUPS, END, TICK, Block
from yarnflow.operators.task.plan import JobInfo
from yarnflow.operators.task.planner import LevelsPlan, SourcePlan
from yarnflow.operators.types.collected import collector
from yarnflow.spark.elements.block_rows import (
    BLOCK_DDL,
    GROUP_COLUMN,
    of_target,
    payloads,
    payloads_in_order,
    row_of,
)
from yarnflow.spark.elements.level_stages import level_blocks, source_blocks
from yarnflow.spark.elements.worker_runs import LevelTask, WorkerSettings, dumps
from yarnflow.spark.messages.reading import MessageChunks, malformed_output, message_reader
from yarnflow.spark.messages.sink_rows import MADE_FROM_ELEMENTS, RowsOfElements, row_ddl
from yarnflow.spark.translate.arrow_values import ColumnBuilder, microseconds, records
from yarnflow.spark.translate.payloads import PAYLOAD_DDL, payload_batches
from yarnflow.spark.translate.schemas import (
    from_struct_type,
    nullable,
    to_arrow,
    to_struct_type,
    visible_columns,
)

#: rows of one batch to a sink
_SINK_BATCH_ROWS: Final = 10_000
#: behind all others
_LAST_SENDER: Final = 2**62
#: a column that says which subtask a row goes to
_TURN: Final = "__subtask"
#: sinks that take elements of any type
_OF_ELEMENTS: Final = (PrintSink, CollectSink, DiscardSink, *MADE_FROM_ELEMENTS)
#: before a micro-batch's time; far more than passes between a look at the clock's source and that time
_TICKS_S: Final = 60
#: reaches no level and no sink
_NO_LEVEL: Final = 0

#: from a partition of blocks to what these hold
ReadPayloads = Callable[[Iterable[pa.RecordBatch]], Iterator[bytes]]


class ElementFrames:
    """Frames of one query of elements.

    Parameters
    ----------
    plan : LevelsPlan
        What runs where.
    nodes : mapping
        Node id → node, of the job.
    frame : callable
        Node id → DataFrame, for the sources.
    job : JobInfo
        For functions' RuntimeContext.
    endless : bool
        The input never ends.
    settings : WorkerSettings
        For the workers.
    """

    def __init__(
        self,
        plan: LevelsPlan,
        nodes: Mapping[int, StreamNode],
        frame: Callable[[int], DataFrame],
        job: JobInfo,
        endless: bool,
        settings: WorkerSettings,
    ) -> None:
        self._endless = endless
        self._plan = plan
        self._nodes = nodes
        self._frame = frame
        self._job = job
        self._settings = settings
        # a new translation: nothing that workers keep of an earlier one is its own
        self._run_id = uuid.uuid4().hex

    def blocks(self, with_end: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """What reaches the sinks, as blocks.

        Parameters
        ----------
        with_end : callable
            Adds the blocks that tell the end of input to those of the sources.
        """
        parts = [self._source(number, source) for number, source in enumerate(self._plan.sources)]
        if self._endless and self._plan.needs_ticks:
            parts.append(tick_blocks(parts[0].sparkSession, self._plan))
        frame = with_end(functools.reduce(DataFrame.unionByName, parts))
        for level, groups in zip(self._plan.levels, self._plan.groups, strict=True):
            frame = level_blocks(frame, LevelTask(self._run_id, level, self._job, self._settings), groups)
        return frame

    def _source(self, number: int, source: SourcePlan) -> DataFrame:
        frame = self._frame(source.node_id)
        if source.spread:
            frame = spread_in_turn(frame, source.spread)
        node = self._nodes[source.node_id]
        schema = node.output_schema
        read: Callable[[pa.RecordBatch], Chunk]
        if isinstance(node.operator, (KafkaSource, RabbitMqSource)) and node.operator.format is not None:
            # an environment that cannot read it is found here
            message_reader(node.operator.format)
            read = MessageChunks(node.operator.format, malformed_output(node.operator))
        elif schema.element_type is not None:
            read = PickledReader(node.origin)
        else:
            names = visible_columns(frame)
            fields = StructType([f for f in nullable(frame.schema).fields if f.name in names])
            read = ColumnReader(from_struct_type(fields, schema.scalar))
        task = LevelTask(self._run_id, source.level, self._job, self._settings, number)
        return source_blocks(frame, task, read)

    def check_sink(self, sink: StreamNode) -> None:
        """Raises UnsupportedGraph for a sink of columns behind elements that are none."""
        schema = self._nodes[sink.inputs[0]].output_schema
        if not schema.known and not isinstance(sink.operator, _OF_ELEMENTS):
            raise UnsupportedGraph(
                f"'{sink.name}' ({sink.origin}) takes columns, and the stream before it has elements of type "
                f"{schema.element_type}; give the last function an output_type with fields"
            )

    def sink_input(self, sink: StreamNode, frame: DataFrame) -> DataFrame:
        """The records of one sink, as columns."""
        schema = self._nodes[sink.inputs[0]].output_schema
        blocks = of_target(frame, sink.node_id)
        if isinstance(sink.operator, DiscardSink):
            return blocks
        # what comes straight from a source is in order, and need not be held in memory
        read = payloads_in_order if self._plan.levels else payloads
        if isinstance(sink.operator, PrintSink):
            return blocks.mapInArrow(cast(Any, Lines(read)), StructType().add(VALUE_FIELD, StringType()))
        if isinstance(sink.operator, CollectSink):
            assert schema.element_type is not None, "a stream of elements has a type"
            return blocks.mapInArrow(cast(Any, CollectedElements(schema.element_type, read)), PAYLOAD_DDL)
        if isinstance(sink.operator, MADE_FROM_ELEMENTS):
            return blocks.mapInArrow(cast(Any, RowsOfElements(sink.operator, read)), row_ddl(sink.operator))
        struct = to_struct_type(schema.columns, f"'{sink.name}' ({sink.origin})")
        maker = Columns(schema.columns, to_arrow(struct), sink.name, _type_names(struct), read)
        return blocks.mapInArrow(cast(Any, maker), nullable(struct))


def spread_in_turn(frame: DataFrame, subtasks: int) -> DataFrame:
    """The rows of each partition to one subtask after the other, in their order.

    Spark's own round robin sorts the rows before, so that it is the same when it is done again; these rows
    come from sources that give the same rows in the same order.
    """
    if subtasks == 1:
        return frame.repartition(1)
    struct = StructType([*frame.schema.fields, StructField(_TURN, IntegerType())])
    numbered = frame.mapInArrow(cast(Any, _Numbered(subtasks)), struct)
    return numbered.repartitionById(subtasks, F.col(_TURN)).drop(_TURN)


class _Numbered:
    """Adds a column that counts the rows of a partition, modulo the number of subtasks.

    Spark has an expression that counts, but not for streams.
    """

    def __init__(self, subtasks: int) -> None:
        self._subtasks = subtasks

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        before, subtasks = 0, self._subtasks
        for batch in batches:
            turns = [number % subtasks for number in range(before, before + batch.num_rows)]
            before += batch.num_rows
            yield batch.append_column(_TURN, pa.array(turns, pa.int32()))


def tick_blocks(spark: SparkSession, plan: LevelsPlan) -> DataFrame:
    """Return a block for all groups of each level every second, so that timers of quiet groups fire.

    One of them in a micro-batch would do.  A job that starts from the state of last week gets those of the
    last minute only: each is a call for each key group, which would take hours.
    """
    levels = F.explode(F.array(*[F.lit(level.level) for level in plan.levels]))
    ticks = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    newest = F.current_timestamp() - F.make_dt_interval(secs=F.lit(_TICKS_S))
    ticks = ticks.where(F.col("timestamp") >= newest)
    return ticks.select(
        levels.alias("level"),
        F.lit(ALL_GROUPS).alias(GROUP_COLUMN),
        F.lit(0).alias("target"),
        F.lit(TICK).alias("kind"),
        F.lit(_LAST_SENDER).cast("bigint").alias("sender"),
        F.col("value").alias("sequence"),
        F.lit(b"").alias("payload"),
    )


def end_blocks(spark: SparkSession, plan: LevelsPlan) -> DataFrame:
    """Blocks that tell every level that the input has ended."""
    ends = [
        Block(level.level, ALL_GROUPS, 0, END, _LAST_SENDER, 0, b"") for level in plan.levels
    ] or [Block(_NO_LEVEL, ALL_GROUPS, 0, END, _LAST_SENDER, 0, b"")]
    return spark.createDataFrame([row_of(end) for end in ends], BLOCK_DDL).coalesce(1)


def _type_names(struct: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in struct.fields}


class PickledReader:
    """Elements of a collection that the program pickled.

    Parameters
    ----------
    origin : str
        The source's line.
    """

    def __init__(self, origin: str) -> None:
        self._origin = origin

    def __call__(self, batch: pa.RecordBatch) -> Chunk:
        """Raises UserCodeError: an element is of a class that is not here."""
        try:
            # a part of the program, as its functions are; without a frame of ours in between
            return Chunk(list(map(pickle.loads, batch.column(0).to_pylist())))  # noqa: S301
        except (ImportError, AttributeError) as error:
            where = f"{self._origin}: " if self._origin else ""
            missing = not_installed(error, f"{where}an element of the collection")
            if missing is None:
                raise
            raise missing from error


class ColumnReader:
    """From rows of columns to elements."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def __call__(self, batch: pa.RecordBatch) -> Chunk:
        timestamps: list[int | None] | None = None
        if EVENT_TIME_FIELD in batch.schema.names:
            times_us = microseconds(batch.column(EVENT_TIME_FIELD))
            timestamps = [None if time_us is None else time_us // 1000 for time_us in times_us]
        return Chunk(list(records(batch, self._schema)), timestamps)


def _elements(found: Iterable[bytes]) -> Iterator[list[Any]]:
    """The values of each block, in pieces of limited size."""
    for payload in found:
        # written by the level before in this very micro-batch
        values = pickle.loads(payload)[1]  # noqa: S301
        for start in range(0, len(values), _SINK_BATCH_ROWS):
            yield values[start : start + _SINK_BATCH_ROWS]


class Lines:
    """From blocks to the lines that ``print()`` writes, which were made where the elements were."""

    def __init__(self, read: ReadPayloads) -> None:
        self._read = read

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for values in _elements(self._read(batches)):
            yield pa.RecordBatch.from_arrays([pa.array(values, pa.string())], names=[VALUE_FIELD])


class CollectedElements:
    """From blocks to pickled lists of what the program gets."""

    def __init__(self, element_type: TypeInfo, read: ReadPayloads) -> None:
        self._element_type = element_type
        self._read = read

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        convert = collector(self._element_type)
        return payload_batches(self._values(self._read(batches), convert), dumps)

    @staticmethod
    def _values(
        found: Iterable[bytes], convert: Callable[[Any], Any] | None
    ) -> Iterator[list[Any]]:
        for values in _elements(found):
            yield values if convert is None else [convert(value) for value in values]


class Columns:
    """From blocks to columns of the declared types."""

    def __init__(
        self, schema: Schema, arrow: pa.Schema, sink: str, type_names: dict[str, str], read: ReadPayloads
    ) -> None:
        self._schema = schema
        self._arrow = arrow
        self._sink = sink
        self._type_names = type_names
        self._read = read

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        builder = ColumnBuilder(self._arrow, self._schema, f"the input of '{self._sink}'", self._type_names)
        for values in _elements(self._read(batches)):
            yield builder.batch(values, {})
