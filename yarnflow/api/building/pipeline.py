"""The transformations of a program, and what can be known of them before the job is executed."""

from __future__ import annotations

from typing import Any

from yarnflow.api.building.elements import SideTags
from yarnflow.api.building.settings import JobSettings
from yarnflow.api.origin import call_origin
from yarnflow.errors import GraphError
from yarnflow.graph.schema import Schema
from yarnflow.graph.stream_graph import UPPER_BOUND_MAX_PARALLELISM, Transformation, located
from yarnflow.graph.type_info import TypeInfo


class Pipeline:
    """The transformations of a program since its last ``execute``, in order of their calls.

    Parameters
    ----------
    environment : StreamExecutionEnvironment
        The program's.
    """

    def __init__(self, environment: Any, settings: JobSettings) -> None:
        self.environment = environment
        self.settings = settings
        self.transformations: list[Transformation] = []
        #: what a stream's operator puts beside its output
        self.side_tags: dict[Transformation, SideTags] = {}
        #: last operator of ``from_source`` → the source, and id and type of its own side outputs
        self.source_sides: dict[Transformation, tuple[Transformation, dict[str, TypeInfo]]] = {}

    def add(self, transformation: Transformation, tags: SideTags | None = None) -> Transformation:
        """Record a transformation, and the side outputs it may have."""
        self.transformations.append(transformation)
        if tags is not None:
            self.side_tags[transformation] = tags
        return transformation

    def program(self) -> list[Transformation]:
        """All transformations of the next job, inputs first; some may be older than the last job."""
        ordered: dict[Transformation, None] = {}
        for transformation in self.transformations:
            waiting = [(transformation, False)]
            while waiting:
                current, inputs_done = waiting.pop()
                if inputs_done:
                    ordered[current] = None
                elif current not in ordered:
                    waiting.append((current, True))
                    waiting += [(i.source, False) for i in reversed(current.inputs)]
        return list(ordered)

    def schema(self, transformation: Transformation) -> Schema:
        """What comes out of a transformation as the program is now.

        Raises
        ------
        GraphError
            With the line of the call that is wrong.
        """
        inputs = tuple(self.schema(i.source) for i in transformation.inputs)
        with located(transformation.origin, transformation.call):
            _, schema = transformation.resolved(inputs)
        return schema


def check_parallelism(parallelism: int) -> int:
    """A parallelism of 1 or more.  Raises GraphError."""
    if type(parallelism) is not int or parallelism < 1:
        raise GraphError(f"{call_origin()}: parallelism {parallelism!r} must be a whole number, 1 or more")
    return parallelism


def check_buffer_timeout(timeout_ms: int) -> int:
    """A buffer timeout of 0 ms or more, or -1.  Raises GraphError."""
    if type(timeout_ms) is not int or timeout_ms < -1:
        raise GraphError(
            f"{call_origin()}: buffer timeout {timeout_ms!r} must be a whole number of ms, 0 or more, or -1"
        )
    return timeout_ms


def check_max_parallelism(max_parallelism: int) -> int:
    """A maximum parallelism within Flink's bounds.  Raises GraphError."""
    if type(max_parallelism) is not int or not 1 <= max_parallelism <= UPPER_BOUND_MAX_PARALLELISM:
        raise GraphError(
            f"{call_origin()}: maximum parallelism {max_parallelism!r} must be from 1 to "
            f"{UPPER_BOUND_MAX_PARALLELISM}"
        )
    return max_parallelism
