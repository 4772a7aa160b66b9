"""What one streaming query of a job graph reads and hands to its sinks, as a frame of Spark's.

Decides which rows tell the end of the input and where in the frame they come in.  Never runs anything: when
they are written, and when a batch is, is decided by :mod:`yarnflow.spark.run.query_run`.  Flink counterpart:
the operators of a ``JobVertex``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from yarnflow.graph.connectors.rabbitmq import RabbitMqSource
from yarnflow.graph.connectors.sources import RateSource, SocketSource
from yarnflow.graph.job_graph import StreamNode
from yarnflow.operators.databases.tokens import RunToken
from yarnflow.operators.task.plan import JobInfo
from yarnflow.operators.task.state_layout import StateLayout, layout_of
from yarnflow.spark.connectors.sources import Sources, rate_seconds
from yarnflow.spark.elements.element_frames import ElementFrames, end_blocks
from yarnflow.spark.elements.worker_runs import WorkerSettings
from yarnflow.spark.translate.query_groups import GraphIndex, QueryGroup, sources_of
from yarnflow.spark.translate.translator import Sentinels, Translator

#: below a query's directory: rows that tell the end of its input
END_OF_INPUT: Final = "end-of-input"
#: of operators on elements
_END_ROWS: Final = "elements"


def state_layout(group: QueryGroup) -> StateLayout:
    """Where a query of operators on elements has their state."""
    assert group.levels is not None, "it has levels"
    return layout_of(group.levels, not group.bounded)


class QueryPlan:
    """One query's.

    Parameters
    ----------
    spark : SparkSession
    index : GraphIndex
        The job's graph.
    group : QueryGroup
        What the query consists of.
    directory : str
        The query's.
    settings : WorkerSettings
        For workers of programs on elements.
    sources : Sources
        Of the attempt, as ``run`` is.
    run : RunToken
    read_messages : callable
        Makes columns of messages that a node has read.

    Attributes
    ----------
    frame : DataFrame
        What the sinks get.
    sentinels : Sentinels or None
        Rows that tell the end of the input; None = nothing in the frame does.
    elements : ElementFrames or None
        Of operators on elements; None = there are none.
    layout : StateLayout or None
        Where these have their state.
    paced_seconds : int
        How long counted rate sources take to make all of their rows; 0 = there are none.
    """

    def __init__(
        self,
        spark: SparkSession,
        index: GraphIndex,
        group: QueryGroup,
        directory: str,
        settings: WorkerSettings,
        sources: Sources,
        run: RunToken,
        read_messages: Callable[[StreamNode, DataFrame], DataFrame],
    ) -> None:
        self._spark = spark
        self._index = index
        self._group = group
        self._directory = directory
        self._run = run
        self.sentinels = self._new_sentinels() if group.bounded and not index.graph.batch else None
        self._translator = Translator(
            spark, index, sources, self.sentinels, read_messages=read_messages, run=run
        )
        self.elements = (
            None
            if group.levels is None
            else ElementFrames(
                group.levels,
                index.nodes,
                self._translator.frame,
                JobInfo(index.graph.name, run.attempt - 1, dict(index.graph.job_parameters)),
                not group.bounded,
                settings,
            )
        )
        self.layout = None if group.levels is None else state_layout(group)
        self.frame = self._made()
        self.paced_seconds = max(
            (rate_seconds(source) for source in sources_of(self.nodes()) if isinstance(source, RateSource)),
            default=0,
        )

    @property
    def ends_with_first_batch(self) -> bool:
        """Whether all input is one batch, and the end can be in it."""
        return (
            self.sentinels is not None
            and (self._group.windowed or self.elements is not None)
            and not self.paced_seconds
            and all(source.read_at_once for source in sources_of(self.nodes()))
        )

    @property
    def reads_messages_that_return(self) -> bool:
        """Whether what is planned and not committed comes again, to whoever reads the queue next."""
        return any(isinstance(source, RabbitMqSource) for source in sources_of(self.nodes()))

    @property
    def input_stays(self) -> bool:
        """Whether what was read can be read again; else what sources have handed over is nowhere."""
        gone = (RabbitMqSource, SocketSource)
        return not any(isinstance(source, gone) for source in sources_of(self.nodes()))

    def nodes(self) -> Iterator[StreamNode]:
        """All nodes up to the sinks' common one."""
        levels = self._group.levels
        bases = [self._group.base] if levels is None else [source.node_id for source in levels.sources]
        for base in bases:
            yield from self._index.upstream(base)

    def tails(self, frame: DataFrame) -> Translator:
        """What each of several sinks gets of one batch of the frame."""
        return Translator(self._spark, self._index, None, frames={self._group.base: frame}, run=self._run)

    def tell_end(self) -> bool:
        """Have the frame tell levels of elements the end, also of an input that has none; false = it does."""
        if self.sentinels is not None:
            return False
        # only the last plan has a source that tells the end, behind all others
        self.sentinels = self._new_sentinels()
        self.frame = self._made()
        return True

    def end_rows_file(self) -> str:
        """Where the rows are written that tell levels of elements the end."""
        assert self.sentinels is not None, "the frame tells the end"
        return self.sentinels.file(_END_ROWS)

    def _new_sentinels(self) -> Sentinels:
        return Sentinels(self._spark, f"{self._directory}/{END_OF_INPUT}")

    def _made(self) -> DataFrame:
        if self.elements is not None:
            for sink in self._group.sinks:
                self.elements.check_sink(self._index.nodes[sink])
            return self.elements.blocks(self._with_end)
        base = self._translator.frame(self._group.base)
        if len(self._group.sinks) == 1:
            return self._translator.sink_input(self._group.sinks[0])
        # the tails are translated for each batch; doing it once here finds their errors before the start
        for sink in self._group.sinks:
            self._translator.sink_input(sink)
        return base

    def _with_end(self, frame: DataFrame) -> DataFrame:
        if self._group.levels is None or (self.sentinels is None and frame.isStreaming):
            return frame
        end = end_blocks(self._spark, self._group.levels)
        if self.sentinels is None or not frame.isStreaming:
            return frame.unionByName(end)
        return self.sentinels.union_rows(_END_ROWS, frame, end)
