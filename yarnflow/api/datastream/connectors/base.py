"""What every source and sink is.  PyFlink: ``pyflink.datastream.connectors.base``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from typing import Any, ClassVar

from yarnflow.graph import operators
from yarnflow.graph.compatibility import differs
from yarnflow.graph.connectors import sinks
from yarnflow.graph.schema import Schema
from yarnflow.graph.type_info import TypeInfo


@differs("a base of yarnflow's own sources; Java's cannot be named")
class Source(ABC):
    """Where elements come from; for ``from_source``."""

    #: name of the operator when the program gives none
    name: ClassVar[str] = "Source"
    #: several subtasks may read it
    parallel: ClassVar[bool] = True
    #: its elements have times of their own
    timestamped: bool = False
    #: id and type of its own side outputs
    side_outputs: tuple[tuple[str, TypeInfo], ...] = ()

    @abstractmethod
    def operator(self) -> tuple[operators.Operator, Schema]:
        """The operator and its fields; raises GraphError for settings that cannot work."""


@differs("a base of yarnflow's own sinks; Java's cannot be named")
class Sink(ABC):
    """Where elements go; for ``sink_to``."""

    name: ClassVar[str] = "Sink"

    @abstractmethod
    def operator(self, schema: Schema) -> operators.Operator:
        """The operator for records of these fields; raises GraphError if it cannot take them."""


class PrintSink(Sink):
    """Elements on the driver's standard output.  At-least-once."""

    name = "Print to Std. Out"

    def __init__(self, identifier: str = "") -> None:
        self._identifier = identifier

    def operator(self, schema: Schema) -> operators.Operator:
        return sinks.PrintSink(self._identifier)


class DeliveryGuarantee(Enum):
    """What a sink promises after a failure."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
    NONE = 2


class StreamTransformer(ABC):
    """Makes a stream of another before it is written."""

    @abstractmethod
    def apply(self, ds: Any) -> Any:
        """The stream to write."""


class SupportsPreprocessing(ABC):
    """A sink that changes its stream first."""

    @abstractmethod
    def get_transformer(self) -> StreamTransformer | None:
        """What changes the stream, or None."""
