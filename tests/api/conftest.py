"""Programs run without a cluster."""

from collections.abc import Iterator
from typing import Any

import pytest

from yarnflow.api import DataStream, StreamExecutionEnvironment
from yarnflow.api.executor import GraphCollector, ProgramAborted, use_executor
from yarnflow.graph.job_graph import JobGraph


class Jobs:
    """Executes environments into job graphs."""

    def __init__(self, collector: GraphCollector) -> None:
        self.collector = collector
        self.begin_again()

    def begin_again(self) -> None:
        """Forget the calls that did not become a graph."""
        self.env = StreamExecutionEnvironment.get_execution_environment()

    def rows(self, schema: str, *rows: Any) -> DataStream:
        """A collection of the schema."""
        return self.env.from_collection(rows, schema)

    def graph(self, name: str | None = None) -> JobGraph:
        """The job graph of all calls since the last one."""
        with pytest.raises(ProgramAborted):
            self.env.execute(name)
        return self.collector.graphs[-1]

    def operator(self) -> Any:
        """The operator before the sink."""
        return self.graph().nodes[-2].operator

    def fields(self) -> list[tuple[str, str | None]]:
        """Names and types of what goes into the sink."""
        return [(field.name, field.type) for field in self.graph().nodes[-2].output_schema.fields]


@pytest.fixture
def jobs() -> Iterator[Jobs]:
    collector = GraphCollector()
    with use_executor(collector):
        yield Jobs(collector)
