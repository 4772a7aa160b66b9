"""Base classes of user functions, as PyFlink names them; plain callables work everywhere too."""

from yarnflow.graph.functions import (
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

__all__ = [
    "FilterFunction",
    "FlatMapFunction",
    "Function",
    "KeySelector",
    "MapFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "TimeWindow",
    "TimestampAssigner",
]
