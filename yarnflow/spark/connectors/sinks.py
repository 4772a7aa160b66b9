"""What writes the batches of which sink: the only list of it.

Files, databases and topics can be exactly-once (see the modules of each), printing is at-least-once, a user's
function is what it makes of the batch's token.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from yarnflow.graph.connectors.elasticsearch import ElasticsearchSink
from yarnflow.graph.connectors.kafka import KafkaSink
from yarnflow.graph.connectors.python import PythonSink
from yarnflow.graph.connectors.rabbitmq import RabbitMqSink
from yarnflow.graph.connectors.redis import RedisSink
from yarnflow.graph.connectors.sinks import (
    CollectSink,
    DiscardSink,
    FileSink,
    ForeachBatchSink,
    JdbcSink,
    PrintSink,
    SocketSink,
)
from yarnflow.spark.connectors.batch_sink import BatchSink, SinkPlace
from yarnflow.spark.connectors.collect_sink import CollectWriter, PartWriter
from yarnflow.spark.connectors.elasticsearch.sink import ElasticsearchWriter
from yarnflow.spark.connectors.file_sink import FileWriter
from yarnflow.spark.connectors.function_sink import DiscardWriter, ForeachBatchWriter
from yarnflow.spark.connectors.jdbc.sink import JdbcWriter
from yarnflow.spark.connectors.kafka.sink import KafkaWriter
from yarnflow.spark.connectors.print_sink import PrintWriter
from yarnflow.spark.connectors.python.sink import PythonWriter
from yarnflow.spark.connectors.rabbitmq.sink import RabbitMqWriter
from yarnflow.spark.connectors.redis.sink import ClaimMark, RedisWriter
from yarnflow.spark.connectors.socket_sink import SocketWriter
from yarnflow.spark.hadoop_files import HadoopFiles


def batch_sink(place: SinkPlace) -> BatchSink:
    """The writer of a sink."""
    operator = place.node.operator
    return _WRITERS[type(operator)](operator, place)


def _print(sink: PrintSink, place: SinkPlace) -> BatchSink:
    # elements are whole lines already
    return PrintWriter("", True) if place.scalar is None else PrintWriter(sink.identifier, place.scalar)


def _files(sink: FileSink, place: SinkPlace) -> BatchSink:
    return FileWriter(place.spark, sink, place.short_id, place.fence, run=place.token)


def _kafka(sink: KafkaSink, place: SinkPlace) -> BatchSink:
    return KafkaWriter(
        place.spark,
        sink,
        place.node.parallelism,
        place.full_id.replace("/", "-"),
        place.sink_key,
        f"{place.directory}/{place.short_id}",
        place.scalar,
        place.fence,
    )


def _queue(sink: RabbitMqSink, place: SinkPlace) -> BatchSink:
    return RabbitMqWriter(sink, place.scalar, place.fence)


def _keys(sink: RedisSink, place: SinkPlace) -> BatchSink:
    path = f"{place.directory}/{place.full_id.replace('/', '-')}.claimed"
    mark = ClaimMark(HadoopFiles(place.spark), path, place.fence)
    return RedisWriter(sink, place.scalar, place.full_id, place.token, mark)


def _documents(sink: ElasticsearchSink, place: SinkPlace) -> BatchSink:
    return ElasticsearchWriter(sink, place.scalar, place.short_id, place.fence)


def _lines(sink: SocketSink, place: SinkPlace) -> BatchSink:
    return SocketWriter(sink, place.scalar, place.fence)


def _database(sink: JdbcSink, place: SinkPlace) -> BatchSink:
    return JdbcWriter(sink, place.full_id, place.token, place.shown)


def _python(sink: PythonSink, place: SinkPlace) -> BatchSink:
    return PythonWriter(sink, place.full_id, place.token, place.fence)


def _function(sink: ForeachBatchSink, place: SinkPlace) -> BatchSink:
    return ForeachBatchWriter(sink.closure, place.full_id, place.token)


def _collect(sink: CollectSink, place: SinkPlace) -> BatchSink:
    files = HadoopFiles(place.spark)
    return CollectWriter(
        PartWriter(files, place.parts_directory, place.part_key, place.fence), place.scalar
    )


def _discard(sink: DiscardSink, place: SinkPlace) -> BatchSink:
    return DiscardWriter()


_WRITERS: Final[dict[type, Callable[[Any, SinkPlace], BatchSink]]] = {
    PrintSink: _print,
    FileSink: _files,
    KafkaSink: _kafka,
    RabbitMqSink: _queue,
    RedisSink: _keys,
    ElasticsearchSink: _documents,
    SocketSink: _lines,
    JdbcSink: _database,
    PythonSink: _python,
    ForeachBatchSink: _function,
    CollectSink: _collect,
    DiscardSink: _discard,
}
