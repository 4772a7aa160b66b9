"""The DataStream API, named as PyFlink names it.

::

    from yarnflow.api import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment()
    words = env.read_text_file("poem.txt").flat_map(str.split, output_type="STRING")
    words.key_by("value AS word").count().print()
    env.execute("word_count")
"""

from yarnflow.api.connectors import (
    DataGeneratorSource,
    FileSink,
    FileSource,
    PrintSink,
    RateSource,
    Sink,
    SocketSource,
    Source,
)
from yarnflow.api.datastream import DataStream, DataStreamSink, KeyedStream, WindowedStream
from yarnflow.api.environment import StreamExecutionEnvironment
from yarnflow.api.executor import JobClient, JobExecutionResult, close_cluster
from yarnflow.api.functions import (
    FilterFunction,
    FlatMapFunction,
    Function,
    KeySelector,
    MapFunction,
    ProcessWindowFunction,
    ReduceFunction,
    TimestampAssigner,
    TimeWindow,
)
from yarnflow.api.time import Duration, Time
from yarnflow.api.watermark import WatermarkStrategy
from yarnflow.api.windows import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    WindowAssigner,
)
from yarnflow.core.states import JobStatus
from yarnflow.graph.rows import Row

__all__ = [
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
    "close_cluster",
]
