"""JobGraph → streaming DataFrames.

Decides what each operator is on Spark: neighbouring Python functions of one task become one
``mapInArrow``, expressions become native columns, keyed and windowed operators Spark's own.
Never starts a query.  Flink counterpart: ``StreamingJobGraphGenerator`` and the operators
themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType, TimestampType

from yarnflow.errors import InvalidExpression, UnsupportedGraph
from yarnflow.graph.generation.projection import fields_of_record
from yarnflow.graph.job_graph import StreamNode
from yarnflow.graph.operators import (
    AssignTimestamps,
    DropDuplicates,
    FilterExpression,
    KeyedReduce,
    LookupJoin,
    PythonKind,
    PythonOperator,
    RunningAggregate,
    SelectOperator,
    Source,
    SqlOperator,
    UnionOperator,
    WindowAggregate,
    WindowFunctionKind,
    WindowProcess,
)
from yarnflow.graph.schema import EVENT_TIME_FIELD, KEY_FIELD, Field, Schema
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.spark.connectors.sources import Sources
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.lookups.join import LookupJoinTask
from yarnflow.spark.lookups.kept import LookupTask
from yarnflow.spark.translate.message_columns import has_messages, message_columns
from yarnflow.spark.translate.python_chain import Chain, ChainSpec, PickledHead, Stage, WindowHead
from yarnflow.spark.translate.query_groups import GraphIndex, is_windowed
from yarnflow.spark.translate.schemas import (
    from_struct_type,
    hidden_columns,
    nullable,
    quoted,
    spark_field,
    to_arrow,
    to_struct_type,
    visible,
    visible_columns,
)
from yarnflow.spark.translate.sql_views import behind_watermark, check_runs, view, with_event_time
from yarnflow.spark.translate.stateful import keyed_reduce, running_aggregate
from yarnflow.spark.translate.windows import SENTINEL_TIME, aggregated, collected, with_watermark

_SENTINEL: Final = "sentinel.parquet"
#: from messages of a node to columns
ReadMessages = Callable[[StreamNode, DataFrame], DataFrame]
#: of frames that no attempt of a job runs
_NO_RUN: Final = RunToken("")
_TIMESTAMP_TYPES: Final = ("timestamp", "timestamp_ntz", "date")


class Sentinels:
    """The rows of one bounded query that tell the end of its input: to windows, and to levels of elements.

    Parameters
    ----------
    spark : SparkSession
        The driver's session.
    directory : str
        ``<query directory>/end-of-input``.
    """

    def __init__(self, spark: SparkSession, directory: str) -> None:
        self._spark = spark
        self._files = HadoopFiles(spark)
        self._directory = directory
        #: directory → the rows that will be there
        self._rows: dict[str, DataFrame] = {}

    def union(self, name: str, frame: DataFrame) -> DataFrame:
        """The frame and, later, a row behind all windows."""
        columns = [
            (F.expr(SENTINEL_TIME) if f.name == EVENT_TIME_FIELD else F.lit(None).cast(f.dataType)).alias(
                f.name
            )
            for f in frame.schema.fields
        ]
        return self.union_rows(name, frame, self._spark.range(1, numPartitions=1).select(*columns))

    def union_rows(self, name: str, frame: DataFrame, rows: DataFrame) -> DataFrame:
        """The frame and, later, the given rows."""
        directory = f"{self._directory}/{name}"
        self._files.make_directory(directory)
        self._rows[directory] = rows
        return frame.unionByName(self._spark.readStream.schema(nullable(frame.schema)).parquet(directory))

    def file(self, name: str) -> str:
        """Where the rows of :meth:`union_rows` are written."""
        return f"{self._directory}/{name}/{_SENTINEL}"

    def write(self) -> bool:
        """Write what is not there yet; whether anything was written."""
        wrote = False
        for directory, rows in self._rows.items():
            if self._files.exists(f"{directory}/{_SENTINEL}"):
                continue
            staging = f"{directory}/.staging"
            self._files.delete(staging)
            rows.write.parquet(staging)
            part = next(name for name, _ in self._files.files_below(staging) if name.endswith(".parquet"))
            self._files.rename(f"{staging}/{part}", f"{directory}/{_SENTINEL}")
            self._files.delete(staging)
            wrote = True
        return wrote


class Translator:
    """Translates the nodes of one query.

    Parameters
    ----------
    spark : SparkSession
        The driver's session.
    index : GraphIndex
        The job's graph.
    sources : Sources or None
        None when only operators behind ``frames`` are translated.
    sentinels : Sentinels or None
        None for queries that never end.
    frames : mapping, optional
        Nodes that are translated already: a micro-batch in ``foreachBatch``.
    read_messages : callable, optional
        From a node that gives messages, and its frame, to columns.
    run : RunToken, optional
        The attempt of the job: what workers keep of outside tables is kept for it.
    """

    def __init__(
        self,
        spark: SparkSession,
        index: GraphIndex,
        sources: Sources | None,
        sentinels: Sentinels | None = None,
        frames: Mapping[int, DataFrame] | None = None,
        read_messages: ReadMessages = message_columns,
        run: RunToken = _NO_RUN,
    ) -> None:
        self._spark = spark
        self._index = index
        self._sources = sources
        self._sentinels = sentinels
        self._frames = dict(frames or {})
        self._read_messages = read_messages
        self._run = run

    def frame(self, node_id: int) -> DataFrame:
        """The node's output, hidden columns included.

        Raises
        ------
        InvalidExpression
            Spark cannot resolve an expression; the message names operator and line.
        GraphError, SourceNotFound
            As the operators raise them.
        """
        if node_id not in self._frames:
            node = self._index.nodes[node_id]
            try:
                self._frames[node_id] = self._translate(node)
            except (AnalysisException, ParseException) as error:
                raise InvalidExpression(f"'{node.name}' ({node.origin}): {_first_line(error)}") from error
        return self._frames[node_id]

    def sink_input(self, sink_id: int) -> DataFrame:
        """What a sink gets: records without hidden columns."""
        frame = self._input(self._index.nodes[sink_id])
        return frame.select(*[F.col(quoted(name)) for name in visible_columns(frame)])

    def _input(self, node: StreamNode, position: int = 0) -> DataFrame:
        upstream = node.inputs[position]
        frame = self.frame(upstream)
        before = self._index.nodes[upstream]
        if has_messages(before):
            frame = self._read_messages(before, frame)
        if self._index.rebalanced(upstream, node.node_id):
            frame = frame.repartition(node.parallelism)
        return frame

    def _translate(self, node: StreamNode) -> DataFrame:
        operator = node.operator
        if isinstance(operator, Source):
            assert self._sources is not None, "a micro-batch has no sources"
            return self._sources.frame(node, operator)
        if isinstance(operator, (PythonOperator, WindowProcess, KeyedReduce)):
            return self._python(node)
        if isinstance(operator, AssignTimestamps):
            return self._timestamps(node, operator) if operator.expression else self._python(node)
        if isinstance(operator, SelectOperator):
            return _selected(self._input(node), operator.expressions)
        if isinstance(operator, FilterExpression):
            return self._input(node).where(operator.expression)
        if isinstance(operator, UnionOperator):
            return self._union(node)
        if isinstance(operator, DropDuplicates):
            return self._without_duplicates(node, operator)
        if isinstance(operator, LookupJoin):
            return self._with_lookup(node, operator)
        if isinstance(operator, RunningAggregate):
            return running_aggregate(operator, self._input(node))
        if isinstance(operator, WindowAggregate):
            return aggregated(node, operator, self._windowed_input(node))
        if isinstance(operator, SqlOperator):
            return self._sql(node, operator)
        raise UnsupportedGraph(f"'{node.name}' ({node.origin}) cannot stand in the middle of a pipeline")

    # --- native operators -------------------------------------------------------

    def _timestamps(self, node: StreamNode, operator: AssignTimestamps) -> DataFrame:
        frame = self._input(node)
        kind = frame.select(F.expr(operator.expression)).schema.fields[0].dataType
        if kind.typeName() not in _TIMESTAMP_TYPES:
            raise InvalidExpression(
                f"'{node.name}' ({node.origin}): event time '{operator.expression}' "
                f"is {kind.simpleString()}, not a "
                "timestamp; convert it, e.g. with timestamp_millis(…) or to_timestamp(…)"
            )
        missing = F.raise_error(
            F.lit(f"record without event time: '{operator.expression}' is null ({node.origin})")
        )
        time = F.coalesce(F.expr(operator.expression).cast(TimestampType()), missing.cast(TimestampType()))
        return frame.withColumn(EVENT_TIME_FIELD, time)

    def _union(self, node: StreamNode) -> DataFrame:
        frames = [self._input(node, position) for position in range(len(node.inputs))]
        # hidden columns go on only if every input has them
        hidden = [n for n in hidden_columns(frames[0]) if all(n in frame.columns for frame in frames)]
        parts = [f.select(*[F.col(quoted(n)) for n in [*visible_columns(f), *hidden]]) for f in frames]
        result = parts[0]
        for part in parts[1:]:
            result = result.union(part)
        return result

    def _sql(self, node: StreamNode, operator: SqlOperator) -> DataFrame:
        for position, name in enumerate(operator.views):
            time = self._index.nodes[node.inputs[position]].output_schema.event_time
            timed = operator.stateful and time is not None
            frame = self._windowed_input(node, position) if timed else self._input(node, position)
            seen = view(name, behind_watermark(frame) if timed else frame, time)
            seen.createOrReplaceTempView(name)
        try:
            result = self._spark.sql(operator.query)
        finally:
            for name in operator.views:
                self._spark.catalog.dropTempView(name)
        check_runs(self._spark, result, operator.changes)
        return result if node.output_schema.event_time is None else with_event_time(node, result)

    def _without_duplicates(self, node: StreamNode, operator: DropDuplicates) -> DataFrame:
        fields = list(operator.fields)
        if operator.within_ms is None:
            return self._input(node).dropDuplicates(fields)
        frame = behind_watermark(self._windowed_input(node, at_least_ms=operator.within_ms))
        # Spark has it for streams only, and a batch is never too large to see all of it
        if not frame.isStreaming:
            return frame.dropDuplicates(fields)
        return frame.dropDuplicatesWithinWatermark(fields)

    def _windowed_input(self, node: StreamNode, position: int = 0, at_least_ms: int = 0) -> DataFrame:
        before = list(self._index.upstream(node.inputs[position]))
        frame = self._input(node, position)
        delay_ms = max(
            (n.operator.out_of_orderness_ms for n in before if isinstance(n.operator, AssignTimestamps)),
            default=0,
        )
        delay_ms = max(delay_ms, at_least_ms)
        earlier = [n for n in before if is_windowed(n.operator)]
        name = node.operator_hash + (f"-{position}" if position else "")
        result = with_watermark(node, frame, delay_ms, lambda frame: self._with_sentinel(name, frame))
        if earlier and result is not frame:
            raise UnsupportedGraph(
                f"'{node.name}' ({node.origin}) cannot follow the window "
                f"'{earlier[0].name}' ({earlier[0].origin}) with Python functions between them: "
                "Spark loses the watermark there; use expressions and built-in aggregates"
            )
        return result

    def _with_sentinel(self, name: str, frame: DataFrame) -> DataFrame:
        return frame if self._sentinels is None else self._sentinels.union(name, frame)

    def _with_lookup(self, node: StreamNode, operator: LookupJoin) -> DataFrame:
        frame = self._input(node)
        names = {name.lower(): name for name in visible_columns(frame)}
        keys = tuple((names[mine.lower()], theirs) for mine, theirs in operator.keys)
        place = f"'{node.name}' ({node.origin})"
        columns = to_struct_type(operator.lookup.columns, place).fields
        fields = {field.name: field for field in nullable(frame.schema).fields}
        records = [fields[name] for name in visible_columns(frame)]
        carried = [fields[EVENT_TIME_FIELD]] if EVENT_TIME_FIELD in fields else []
        output = StructType([*records, *columns, *carried])
        task = LookupJoinTask(
            LookupTask(self._run, node.operator_hash, replace(operator, keys=keys), place),
            to_arrow(output),
            {field.name: field.dataType.simpleString() for field in columns},
        )
        frame = frame.select(*[F.col(quoted(field.name)) for field in [*records, *carried]])
        return frame.mapInArrow(cast(Any, task), nullable(output))

    # --- Python -----------------------------------------------------------------

    def _python(self, node: StreamNode) -> DataFrame:
        """The longest run of Python functions that ends with this node, as one ``mapInArrow``."""
        run: list[StreamNode] = []
        current, head = node, None
        while True:
            if isinstance(current.operator, (WindowProcess, KeyedReduce)):
                head = current
                break
            run.insert(0, current)
            before = self._index.nodes[current.inputs[0]]
            if before.node_id in self._frames or not self._index.chained(before.node_id, current.node_id):
                break
            if not _runs_in_python(before) and not isinstance(before.operator, (WindowProcess, KeyedReduce)):
                break
            current = before
        functions = [n for n in run if isinstance(n.operator, PythonOperator)]
        if head is not None:
            return self._after_head(head, functions)
        frame = self._input(run[0])
        if not functions:
            return frame
        scalar = self._index.nodes[run[0].inputs[0]].output_schema.scalar
        found = Schema(tuple(map(Field, visible_columns(frame))), scalar)
        kept = fields_of_record([one.operator for one in run], found)
        record = StructType([f for f in nullable(frame.schema).fields if f.name in kept])
        carried = [EVENT_TIME_FIELD] if EVENT_TIME_FIELD in frame.columns else []
        frame = frame.select(*[F.col(quoted(name)) for name in [*record.names, *carried]])
        return _map_in_arrow(frame, functions, from_struct_type(record, scalar), record, bool(carried))

    def _after_head(self, head: StreamNode, functions: list[StreamNode]) -> DataFrame:
        """A keyed Python operator and the functions chained to it."""
        source = self._index.nodes[head.inputs[0]]
        scalar = source.output_schema.scalar
        operator = head.operator
        if isinstance(operator, KeyedReduce):
            before = self._input(head)
            record = StructType(
                [f for f in nullable(before.schema).fields if f.name in visible_columns(before)]
            )
            output = from_struct_type(record, scalar)
            frame = keyed_reduce(operator, before, scalar)
            return _map_in_arrow(
                frame, functions, output, record, False, PickledHead(operator.closure, output)
            )
        assert isinstance(operator, WindowProcess)
        before = self._windowed_input(head)
        record = StructType([f for f in nullable(before.schema).fields if f.name in visible_columns(before)])
        element = from_struct_type(record, scalar)
        if operator.kind is WindowFunctionKind.REDUCE:
            output = element
        else:
            output = visible(head.output_schema)
            record = to_struct_type(output, f"'{head.name}' ({head.origin})")
        frame, key_names = collected(head, operator, before)
        window = WindowHead(operator.kind, operator.closure, key_names, operator.key.names, element, output)
        return _map_in_arrow(frame, functions, element, record, True, window)


def _runs_in_python(node: StreamNode) -> bool:
    """Python functions, and the marker that says how late their timestamps may be."""
    operator = node.operator
    return isinstance(operator, PythonOperator) or (
        isinstance(operator, AssignTimestamps) and not operator.expression
    )


def _map_in_arrow(
    frame: DataFrame,
    functions: list[StreamNode],
    source: Schema,
    record: StructType,
    event_time: bool,
    head: WindowHead | PickledHead | None = None,
) -> DataFrame:
    """Apply functions to a frame whose records are of type ``record`` before them."""
    stages: list[Stage] = []
    schema = source if head is None else head.output
    fields = list(record.fields)
    hidden: dict[str, StructField] = {}
    if event_time:
        hidden[EVENT_TIME_FIELD] = StructField(EVENT_TIME_FIELD, TimestampType(), True)
    for node in functions:
        operator = cast(PythonOperator, node.operator)
        where = f"'{node.name}' ({node.origin})"
        if operator.kind in (PythonKind.MAP, PythonKind.FLAT_MAP):
            schema = visible(node.output_schema)
            fields = list(to_struct_type(schema, where).fields)
            hidden.pop(KEY_FIELD, None)
        elif operator.kind is PythonKind.TIMESTAMP:
            hidden[EVENT_TIME_FIELD] = StructField(EVENT_TIME_FIELD, TimestampType(), True)
        elif operator.kind is PythonKind.KEY:
            declared = [f for f in node.output_schema.fields if f.name == KEY_FIELD]
            if not declared:
                raise UnsupportedGraph(f"{where} does not say what type its keys have")
            hidden[KEY_FIELD] = spark_field(declared[0], where)
        stages.append(Stage(operator.kind, operator.closure, schema))
    output = StructType([*fields, *hidden.values()])
    type_names = {f.name: f.dataType.simpleString() for f in output.fields}
    spec = ChainSpec(source, tuple(stages), to_arrow(output), head, type_names)
    return frame.mapInArrow(cast(Any, Chain(spec)), nullable(output))


def _selected(frame: DataFrame, expressions: tuple[str, ...]) -> DataFrame:
    """A projection that carries the hidden columns along."""
    selected = frame.selectExpr(*expressions)
    missing = [quoted(name) for name in hidden_columns(frame) if name not in selected.columns]
    return frame.selectExpr(*expressions, *missing) if missing else selected


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
