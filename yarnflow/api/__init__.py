"""The DataStream API: PyFlink's, and what is ours alone.

Modules, names and behaviour are PyFlink's (``yarnflow.api.common``, ``yarnflow.api.datastream`` …); a
program that yarnflow runs finds them under the name ``pyflink``, too.  This package has the names most
programs need, and the sources, expressions and SQL that PyFlink has not::

    from yarnflow.api import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment()
    words = env.read_text_file("poem.txt").flat_map(str.split, output_type="STRING")
    words.key_by("value AS word").count().print()
    env.execute("word_count")
"""

from yarnflow.api.common.job_client import JobClient
from yarnflow.api.common.time import Duration, Time
from yarnflow.api.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from yarnflow.api.datastream.connectors.base import PrintSink, Sink, Source
from yarnflow.api.datastream.connectors.file_system import FileSink, FileSource
from yarnflow.api.datastream.connectors.simple import DataGeneratorSource, RateSource, SocketSource
from yarnflow.api.datastream.data_stream import DataStream, DataStreamSink, KeyedStream, WindowedStream
from yarnflow.api.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    Function,
    KeySelector,
    MapFunction,
    ProcessWindowFunction,
    ReduceFunction,
)
from yarnflow.api.datastream.stream_execution_environment import StreamExecutionEnvironment
from yarnflow.api.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from yarnflow.api.exactly_once import BatchToken, batch_token, commit_once
from yarnflow.api.executor import JobExecutionResult, close_cluster
from yarnflow.core.states import JobStatus
from yarnflow.graph.rows import Row

__all__ = [
    "BatchToken",
    "DataGeneratorSource",
    "DataStream",
    "DataStreamSink",
    "Duration",
    "EventTimeSessionWindows",
    "FileSink",
    "FileSource",
    "FilterFunction",
    "FlatMapFunction",
    "Function",
    "JobClient",
    "JobExecutionResult",
    "JobStatus",
    "KeySelector",
    "KeyedStream",
    "MapFunction",
    "PrintSink",
    "ProcessWindowFunction",
    "RateSource",
    "ReduceFunction",
    "Row",
    "Sink",
    "SlidingEventTimeWindows",
    "SocketSource",
    "Source",
    "StreamExecutionEnvironment",
    "Time",
    "TimeWindow",
    "TimestampAssigner",
    "TumblingEventTimeWindows",
    "WatermarkStrategy",
    "WindowAssigner",
    "WindowedStream",
    "batch_token",
    "close_cluster",
    "commit_once",
]
