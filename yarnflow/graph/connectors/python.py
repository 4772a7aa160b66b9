"""Data sources that a program defines itself, as plain values.

Spark: ``pyspark.sql.datasource.DataSource``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from yarnflow.graph.closures import Closure
from yarnflow.graph.schema import Schema


@dataclass(frozen=True, slots=True)
class PythonSource:
    """What a class of the program reads."""

    #: a class
    data_source: Closure
    schema: Schema
    options: dict[str, str] = field(default_factory=dict)
    bounded: bool = False
    #: by its reader of batches; else by its reader of streams
    of_batches: bool = False

    @property
    def read_at_once(self) -> bool:
        return self.of_batches


@dataclass(frozen=True, slots=True)
class PythonSink:
    """What a class of the program writes; exactly-once if it commits no batch twice."""

    #: a class
    data_source: Closure
    options: dict[str, str] = field(default_factory=dict)
    #: its writer is told the number of the batch
    of_streams: bool = True
