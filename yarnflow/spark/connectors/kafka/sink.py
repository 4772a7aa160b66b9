"""Messages to Kafka, one micro-batch at a time.

Decides what is written before what, so that a batch that is done again leaves each message readable once
where that was asked for; why it is so is said in :mod:`yarnflow.spark.connectors.kafka.transactions`.

::

    <directory>/layout.json                 batches → number of parts
                <batch>.<incarnation>/      the batch's messages, divided into parts, as one driver made them
                <batch>.json                which of these counts
"""

from __future__ import annotations

import json
import posixpath
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, cast

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from yarnflow.errors import EnvironmentUnusable
from yarnflow.graph.connectors.kafka import KafkaDelivery, KafkaSink
from yarnflow.spark.checkpoints.job import Fence, no_fence
from yarnflow.spark.connectors.batch_sink import BatchSink
from yarnflow.spark.connectors.kafka.properties import checked, to_librdkafka
from yarnflow.spark.connectors.kafka.transactions import Layout
from yarnflow.spark.connectors.rows_of_columns import sink_rows
from yarnflow.spark.hadoop_files import HadoopFiles
from yarnflow.spark.messages.records import RECORD_ARROW, RECORD_DDL

_LAYOUT: Final = "layout.json"
#: of a row's number; the rest is that of its partition
_ROW_BITS: Final = 40
_STAGED_DDL: Final = f"part int, sequence bigint, {RECORD_DDL}"


class KafkaWriter(BatchSink):
    """Messages of topics, as the sink's delivery guarantee says.

    Parameters
    ----------
    spark : SparkSession
        The driver's session.
    sink : KafkaSink
    parallelism : int
        Of the sink: transactions of a batch.
    writer_id : str
        Names what the sink notes in Kafka, where nothing else tells it from other sinks: the same after a
        restart and in a job that goes on from a retained checkpoint, another one for a job of a savepoint.
    operator_id : str
        Names its transactions: the same for all runs of a program.
    directory : str
        For batches that are not written completely; part of the job's checkpoint directory.
    scalar : bool or None
        Batches have columns: whether a record is the bare value of one; None = they have messages.
    fence : callable
        Raises when this driver may not write.

    Raises
    ------
    UnsupportedGraph
        A property is none of librdkafka's.
    EnvironmentUnusable
        librdkafka is not installed.
    """

    def __init__(
        self,
        spark: SparkSession,
        sink: KafkaSink,
        parallelism: int,
        writer_id: str,
        operator_id: str,
        directory: str,
        scalar: bool | None,
        fence: Fence = no_fence,
    ) -> None:
        try:
            from yarnflow.spark.connectors.kafka import producer
        except ImportError:
            raise EnvironmentUnusable(
                "the Kafka sink needs the library confluent-kafka, which is not here; add it to the job's "
                "environment: pip install 'yarnflow[kafka]'"
            ) from None
        self._producers = producer
        in_transactions = sink.delivery is KafkaDelivery.EXACTLY_ONCE
        checked(sink.properties, lambda found: producer.make_client(found, in_transactions))
        self._settings = to_librdkafka(sink.properties)
        self._spark = spark
        self._sink = sink
        self._parallelism = parallelism
        self._transactional_id = f"{sink.transactional_id_prefix}-{operator_id[:8]}"
        self._group = f"{sink.transactional_id_prefix}-{writer_id}"
        self._directory = directory
        self._scalar = scalar
        self._fence = fence
        self._files = HadoopFiles(spark)
        self._layout: Layout | None = None
        self._incarnation = uuid.uuid4().hex[:12]
        self._topic_seen = not sink.topic

    def write(self, frame: DataFrame, batch_id: int) -> int:
        """Write a batch, or what a crash left to write of it."""
        if not self._topic_seen:
            self._producers.look_for_topic(self._settings, self._sink.topic)
            self._topic_seen = True
        frame = sink_rows(frame, self._sink, self._scalar)
        if self._sink.delivery is not KafkaDelivery.EXACTLY_ONCE:
            return self._counted(frame, self._producers.Produce(self._settings))
        if self._layout is None or not self._layout.note_topic:
            self._layout = self._begin(frame, batch_id)
        if not self._layout.note_topic:
            # there has been no message yet; Spark wants all state to be written all the same
            return self._computed(frame)
        parts = self._layout.parts(batch_id)
        if parts == 1:
            return self._counted(self._in_one_part(frame), self._part(batch_id, 0))
        rows = self._staged(frame, batch_id, parts)
        self._forget_before(batch_id)
        return rows

    def finish(self) -> None:
        """Remove what is left of batches, all of which are committed."""
        self._files.delete(self._directory)

    def _part(self, batch_id: int, part: int | None) -> Any:
        assert self._layout is not None, "a batch has begun"
        return self._producers.ProducePart(
            self._settings, self._transactional_id, self._group, self._layout.note_topic, batch_id, part
        )

    def _counted(self, frame: DataFrame, produce: Any) -> int:
        self._fence()
        counts = frame.mapInArrow(produce, self._producers.COUNT_DDL).collect()
        return sum(count for (count,) in counts)

    def _begin(self, frame: DataFrame, batch_id: int) -> Layout:
        path = f"{self._directory}/{_LAYOUT}"
        before = self._files.parsed(path, Layout.from_json) if self._files.exists(path) else Layout()
        layout = before.with_parallelism(self._parallelism, batch_id)
        if not layout.note_topic:
            topic = self._sink.topic or next((found for (found,) in frame.select("topic").head(1)), "")
            layout = replace(layout, note_topic=topic)
        if layout != before:
            self._fence()
            self._files.write(path, layout.to_json().encode())
        return layout

    def _in_one_part(self, frame: DataFrame) -> DataFrame:
        """What one task writes, the rows of each partition in their order."""
        if self._scalar is None:
            # elements have been computed before: this task reads them from where they are kept
            return frame.coalesce(1)
        # columns are computed by whoever asks for them: behind an exchange by all tasks, before the
        # transaction begins, and to the end even if the batch turns out to be there, for state comes of it;
        # without one, by this task alone, while the transaction is open
        return frame.repartition(1)

    def _staged(self, frame: DataFrame, batch_id: int, parts: int) -> int:
        manifest = f"{self._directory}/{batch_id}.json"
        if self._files.exists(manifest):
            # Spark takes a batch whose state stores were not written in this run for one that was not
            # processed, and fails the query
            self._computed(frame)
        else:
            own = f"{batch_id}.{self._incarnation}"
            self._files.delete(f"{self._directory}/{own}")
            # computed and written by as many tasks as there are partitions; parts are made when it is read
            numbered = frame.mapInArrow(cast(Any, _Numbered(parts)), _STAGED_DDL)
            numbered.write.parquet(f"{self._directory}/{own}")
            self._fence()
            if not self._files.exists(manifest):
                # whole or not at all: an earlier driver that came back to life reads it as well
                self._files.write(f"{self._directory}/{own}.json", json.dumps({"data": own}).encode())
                self._files.rename(f"{self._directory}/{own}.json", manifest)
        # nowhere else: the manifest may have been brought by a checkpoint of others
        own = posixpath.basename(self._files.parsed(manifest, lambda text: json.loads(text)["data"]))
        data = f"{self._directory}/{own}"
        if not self._files.exists(data):
            # all parts were committed before the crash
            return 0
        staged = self._spark.read.schema(_STAGED_DDL).parquet(data)
        by_part = staged.repartitionById(parts, F.col("part")).sortWithinPartitions("sequence")
        rows = self._counted(by_part.drop("part", "sequence"), self._part(batch_id, None))
        self._files.delete(data)
        return rows

    @staticmethod
    def _computed(frame: DataFrame) -> int:
        """Compute what is not written."""
        frame.write.format("noop").mode("overwrite").save()
        return 0

    def _forget_before(self, batch_id: int) -> None:
        """Manifests of earlier batches: Spark committed those before it began this one."""
        for name in self._files.children(self._directory):
            number = name.partition(".")[0]
            if number.isdigit() and int(number) < batch_id:
                self._files.delete(f"{self._directory}/{name}")


class _Numbered:
    """Adds which part writes a row, and a number that rises with the partition's rows.

    Rows of one partition are in one part, in their order.
    """

    def __init__(self, parts: int) -> None:
        self._parts = parts

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        part, before = pa.scalar(partition % self._parts, pa.int32()), partition << _ROW_BITS
        for batch in batches:
            numbers = pa.array(range(before, before + batch.num_rows), pa.int64())
            before += batch.num_rows
            columns = [pa.repeat(part, batch.num_rows), numbers]
            columns += [batch.column(name) for name in RECORD_ARROW.names]
            yield pa.RecordBatch.from_arrays(columns, names=["part", "sequence", *RECORD_ARROW.names])
