"""The program's entry to a job.

Decides how a program's calls become one job graph with the options around it; hands it to the
installed executor and knows nothing of clusters.  PyFlink counterpart:
``StreamExecutionEnvironment``.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterable, Mapping
from typing import TypeVar

from yarnflow.api import definitions
from yarnflow.api.connectors import FileSource, SocketSource, Source
from yarnflow.api.datastream import DataStream, Pipeline, check_max_parallelism, check_parallelism
from yarnflow.api.executor import JobClient, JobExecutionResult, current_executor, surrounding_configuration
from yarnflow.api.origin import call_origin
from yarnflow.api.watermark import WatermarkStrategy
from yarnflow.config.option import ConfigOption
from yarnflow.config.options import job
from yarnflow.core.ids import JobId
from yarnflow.errors import InvalidOption
from yarnflow.graph.generator import generate_job_graph
from yarnflow.graph.job_graph import JobGraph
from yarnflow.graph.stream_graph import Definition, GraphSettings, Input, Transformation

T = TypeVar("T")


class StreamExecutionEnvironment:
    """Collects a program's streams and executes them as a job."""

    def __init__(self, configuration: Mapping[str, str] | None = None) -> None:
        self._configuration: dict[str, str] = {}
        self._pipeline = Pipeline()
        for key, value in (configuration or {}).items():
            self.set_config(key, value)

    @staticmethod
    def get_execution_environment(
        configuration: Mapping[str, str] | None = None
    ) -> StreamExecutionEnvironment:
        """A new environment with the options of the command that runs the program.

        Parameters
        ----------
        configuration : mapping, optional
            Options of the program, which win over those.
        """
        return StreamExecutionEnvironment(configuration)

    # --- options ------------------------------------------------------------------------

    def set_config(self, key: str, value: object) -> StreamExecutionEnvironment:
        """Set a job option (or a ``spark.…`` option) for this program.

        Raises
        ------
        UnknownOption, InvalidOption
            With the line of the program.
        """
        from yarnflow.config.configuration import Configuration

        text = str(value).lower() if isinstance(value, bool) else str(value)
        Configuration.empty().with_values({key: text}, source=call_origin())
        self._configuration[key] = text
        return self

    def configure(self, configuration: Mapping[str, object]) -> StreamExecutionEnvironment:
        """:meth:`set_config` for several options."""
        for key, value in configuration.items():
            self.set_config(key, value)
        return self

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """Set the number of subtasks of all operators that set none."""
        return self.set_config(job.PARALLELISM_DEFAULT.key, check_parallelism(parallelism))

    def get_parallelism(self) -> int:
        """The number of subtasks of operators that set none."""
        return self._option(job.PARALLELISM_DEFAULT)

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """Set the most subtasks operators that set none may ever have."""
        return self.set_config(job.MAX_PARALLELISM.key, check_max_parallelism(max_parallelism))

    def _option(self, option: ConfigOption[T]) -> T:
        for configuration in (self._configuration, surrounding_configuration()):
            for key in (option.key, *option.deprecated_keys):
                if key in configuration:
                    text = configuration[key]
                    try:
                        return option.parse(text)
                    except ValueError as exc:
                        raise InvalidOption(f"option {key}: '{text}' is not {exc}") from exc
        return option.default

    # --- sources ------------------------------------------------------------------------

    def from_collection(
        self, collection: Iterable[object], schema: object | None = None, type_info: object | None = None
    ) -> DataStream:
        """A bounded stream of the program's own rows.

        Parameters
        ----------
        collection : iterable
            Values, tuples, Rows, dicts or dataclass instances.
        schema : str or type, optional
            ``"name STRING, n INT"``, a lone type for values, or a Python type; default: from the
            rows (tuples have f0, f1 …).
        type_info : str or type, optional
            PyFlink's name for ``schema``.
        """
        define = definitions.collection(list(collection), schema if schema is not None else type_info)
        return self._source("Source: Collection Source", "from_collection", define, parallel=False)

    def from_source(
        self, source: Source, watermark_strategy: WatermarkStrategy | None = None, source_name: str = ""
    ) -> DataStream:
        """Read a source, with event time if the strategy tells it."""
        define = definitions.source(source.operator)
        name = f"Source: {source_name or source.name}"
        stream = self._source(name, "from_source", define, source.parallel)
        return stream if watermark_strategy is None else stream._assign(watermark_strategy, "from_source")

    def read_text_file(self, file_path: str | os.PathLike[str]) -> DataStream:
        """The lines of a file, or of all files of a directory; a bounded scalar stream."""
        source = FileSource(file_path)
        return self._source("Source: Text File", "read_text_file", definitions.source(source.operator))

    def socket_text_stream(self, host: str, port: int) -> DataStream:
        """The lines a TCP server sends; a scalar stream."""
        source = SocketSource(host, port)
        define = definitions.source(source.operator)
        return self._source(f"Source: {source.name}", "socket_text_stream", define, source.parallel)

    def sql(self, query: str, *, schema: object | None = None, **streams: DataStream) -> DataStream:
        """A Spark SQL query over streams, each a view of the name it is passed by.

        Event time does not pass a query: assign it to the result.

        Parameters
        ----------
        query : str
            ``"SELECT … FROM clicks"``.
        schema : str or type, optional
            Fields of the result, where the client cannot tell them.
        **streams : DataStream
            ``clicks=stream``.
        """
        inputs = tuple(Input(stream._transformation, stream._strategy) for stream in streams.values())
        define = definitions.sql(query, tuple(streams), schema)
        name = "SQL" if streams else "Source: SQL"
        return DataStream(
            self._pipeline, self._pipeline.add(Transformation(name, "sql", call_origin(), define, inputs))
        )

    def _source(
        self, name: str, call: str, define: Definition, parallel: bool = True
    ) -> DataStream:
        return DataStream(
            self._pipeline,
            self._pipeline.add(Transformation(name, call, call_origin(), define, parallel=parallel)),
        )

    # --- execution ------------------------------------------------------------------------

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run everything defined since the last call as a job and wait for its end.

        Raises
        ------
        GraphError
            The job cannot run as it is; the message begins with the line at fault.
        UserCodeError, JobFailed, JobCanceled
            The job did not finish.
        ProgramError
            Nothing here can run jobs.
        """
        return self.execute_async(job_name).get_job_execution_result()

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """As :meth:`execute`, but return when the cluster has accepted the job."""
        executor = current_executor()
        graph = self._job_graph(job_name)
        self._pipeline.transformations.clear()
        return executor.submit(graph)

    def get_execution_plan(self) -> str:
        """The plan of the job as JSON text; nothing is run."""
        from yarnflow.graph.plan import plan_json

        return plan_json(self._job_graph(None))

    def _job_graph(self, job_name: str | None) -> JobGraph:
        settings = GraphSettings(
            job_name=self._option(job.PIPELINE_NAME) or job_name or _program_name(),
            parallelism=self._option(job.PARALLELISM_DEFAULT),
            max_parallelism=self._option(job.MAX_PARALLELISM),
            chaining=self._option(job.OPERATOR_CHAINING),
            configuration=dict(self._configuration),
        )
        return generate_job_graph(self._pipeline.transformations, settings, JobId(uuid.uuid4().hex))


def _program_name() -> str:
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.splitext(os.path.basename(path))[0] if path else "yarnflow job"
