"""What users subclass, and the contexts they are given.  PyFlink: ``pyflink.datastream.functions``."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from yarnflow.graph.compatibility import NO_JVM, refused_class
from yarnflow.operators.functions.asynchronous import AsyncFunction, AsyncRetryPredicate, AsyncRetryStrategy
from yarnflow.operators.functions.base import Function
from yarnflow.operators.functions.broadcast import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from yarnflow.operators.functions.elements import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    FilterFunction,
    FlatMapFunction,
    KeySelector,
    MapFunction,
    NullByteKeySelector,
    Partitioner,
    ReduceFunction,
    TimestampAssigner,
)
from yarnflow.operators.functions.joins import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)
from yarnflow.operators.functions.lookup import AsyncLookupFunction, LookupFunction
from yarnflow.operators.functions.process import (
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessFunction,
)
from yarnflow.operators.functions.runtime_context import KeyedStateStore, RuntimeContext
from yarnflow.operators.functions.time import TimerService
from yarnflow.operators.functions.windows import (
    AllWindowFunction,
    PassThroughAllWindowFunction,
    PassThroughWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)

SourceFunction: Any = refused_class(
    "SourceFunction", NO_JVM, "from_source(PythonSource(…)) with a DataSource of pyspark"
)
SinkFunction: Any = refused_class(
    "SinkFunction", NO_JVM, "sink_to(PythonSink(…)) with a DataSource of pyspark, or foreach_batch(…)"
)


@dataclass
class AsyncFunctionDescriptor:
    """An asynchronous function with how it is called."""

    class OutputMode(Enum):
        """The order of results: that of elements, or as they come."""

        ORDERED = 0
        UNORDERED = 1

    async_function: AsyncFunction[Any, Any]
    timeout: Any
    capacity: int
    async_retry_strategy: AsyncRetryStrategy[Any]
    output_mode: OutputMode


__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
    "AsyncFunction",
    "AsyncFunctionDescriptor",
    "AsyncLookupFunction",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "Function",
    "JoinFunction",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "LookupFunction",
    "MapFunction",
    "NullByteKeySelector",
    "Partitioner",
    "PassThroughAllWindowFunction",
    "PassThroughWindowFunction",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RuntimeContext",
    "SinkFunction",
    "SourceFunction",
    "TimerService",
    "TimestampAssigner",
    "WindowFunction",
]
