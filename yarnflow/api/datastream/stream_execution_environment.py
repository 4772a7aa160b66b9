"""The program's entry to a job.  PyFlink: ``pyflink.datastream.stream_execution_environment``.

Decides how a program's calls become one job graph with the options around it; hands it to the
installed executor and knows nothing of clusters.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, Final, NoReturn, cast

from yarnflow.api.building import definitions
from yarnflow.api.building.pipeline import (
    Pipeline,
    check_buffer_timeout,
    check_max_parallelism,
    check_parallelism,
)
from yarnflow.api.building.settings import JobSettings
from yarnflow.api.building.shipped import add_file, archive, check_requirements, python_file
from yarnflow.api.common.configuration import Configuration
from yarnflow.api.common.execution_config import ExecutionConfig
from yarnflow.api.common.io import InputFormat
from yarnflow.api.common.job_client import JobClient
from yarnflow.api.common.restart_strategy import RestartStrategyConfiguration
from yarnflow.api.common.watermark_strategy import WatermarkStrategy
from yarnflow.api.datastream.checkpoint_config import CheckpointConfig
from yarnflow.api.datastream.checkpointing_mode import CheckpointingMode
from yarnflow.api.datastream.connectors.base import Source
from yarnflow.api.datastream.connectors.file_system import FileSource
from yarnflow.api.datastream.connectors.simple import SocketSource
from yarnflow.api.datastream.data_stream import DataStream
from yarnflow.api.datastream.execution_mode import RuntimeExecutionMode
from yarnflow.api.datastream.formats.avro import AvroInputFormat
from yarnflow.api.datastream.slot_sharing_group import SlotSharingGroup
from yarnflow.api.datastream.state_backend import StateBackend
from yarnflow.api.executor import (
    CollectingJob,
    ElementIterator,
    JobExecutionResult,
    SubmittedJob,
    current_executor,
    surrounding_configuration,
)
from yarnflow.api.origin import call_origin
from yarnflow.config.option import ConfigOption
from yarnflow.config.options import client, job, python
from yarnflow.core.ids import JobId
from yarnflow.errors import GraphError, ProgramError, UnsupportedGraph
from yarnflow.graph.closures import NotInFunctions
from yarnflow.graph.compatibility import differs, same_and, unsupported
from yarnflow.graph.generation.generator import generate_job_graph
from yarnflow.graph.job_graph import JobGraph
from yarnflow.graph.modes.real_time import MICRO_BATCH, chosen_mode, stages
from yarnflow.graph.modes.runtime import runs_as_batch
from yarnflow.graph.stream_graph import Definition, GraphSettings, Transformation
from yarnflow.graph.type_info import TypeInformation

#: value of ``execution.target`` where the cluster is this process's own
_LOCAL: Final = "local"


class StreamExecutionEnvironment:
    """Collects a program's streams and executes them as a job."""

    _default_local_parallelism: ClassVar[int | None] = None

    def __init__(self, configuration: Configuration | Mapping[str, str] | None = None) -> None:
        self._settings = JobSettings()
        self._pipeline = Pipeline(self, self._settings)
        if self._default_local_parallelism is not None and not self._settings.is_set(job.PARALLELISM_DEFAULT):
            if surrounding_configuration().get(client.TARGET.key) == _LOCAL:
                self.set_parallelism(self._default_local_parallelism)
        if isinstance(configuration, Configuration):
            self._settings.take_over(configuration.to_dict())
        else:
            for key, value in (configuration or {}).items():
                self.set_config(key, value)

    def __reduce__(self) -> NoReturn:
        raise NotInFunctions(
            "a StreamExecutionEnvironment cannot be used inside a function: streams are made before the job "
            "runs"
        )

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | Mapping[str, str] | None = None
    ) -> StreamExecutionEnvironment:
        """A new environment with the options of the command that runs the program.

        Where nothing says a parallelism it is 1, and the number of processors in a program that runs by
        ``python job.py`` or ``python -m yarnflow job.py``, as in Flink.

        Parameters
        ----------
        configuration : Configuration or mapping, optional
            Options of the program, which win over those.  A key nobody knows is an error in a mapping and
            a warning in a Configuration.
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
        self._settings.set_text(key, value)
        return self

    @same_and("takes a mapping, too; gives the environment")
    def configure(
        self, configuration: Configuration | Mapping[str, object]
    ) -> StreamExecutionEnvironment:
        """:meth:`set_config` for several options."""
        if isinstance(configuration, Configuration):
            self._settings.take_over(configuration.to_dict())
            return self
        for key, value in configuration.items():
            self.set_config(key, value)
        return self

    def get_config(self) -> ExecutionConfig:
        """The settings of the whole job."""
        return ExecutionConfig(self._settings)

    def get_checkpoint_config(self) -> CheckpointConfig:
        """The settings of checkpoints."""
        return CheckpointConfig(self._settings)

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """Set the number of subtasks of all operators that set none; -1 = as if it was not set."""
        if parallelism == ExecutionConfig.PARALLELISM_DEFAULT:
            self._settings.values.pop(job.PARALLELISM_DEFAULT.key, None)
        else:
            self._settings.set(job.PARALLELISM_DEFAULT, check_parallelism(parallelism))
        return self

    def get_parallelism(self) -> int:
        """The number of subtasks of operators that set none."""
        return self._settings.parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """Set the most subtasks operators that set none may ever have."""
        self._settings.set(job.MAX_PARALLELISM, check_max_parallelism(max_parallelism))
        return self

    def get_max_parallelism(self) -> int:
        """The most subtasks operators that set none may ever have; -1 = derived from each."""
        return self._settings.get(job.MAX_PARALLELISM)

    def get_default_local_parallelism(self) -> int:
        """What was set, else the number of this machine's processors."""
        return StreamExecutionEnvironment._default_local_parallelism or os.cpu_count() or 1

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Set the parallelism of environments made from now on that run here and are told no other."""
        StreamExecutionEnvironment._default_local_parallelism = check_parallelism(parallelism)

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        """Run as a stream, or as a batch: all of the input at once, and of each running result the last one.

        AUTOMATIC is BATCH if all sources are bounded.
        """
        self._settings.set(job.RUNTIME_MODE, execution_mode.name)
        return self

    @same_and("elements travel in micro-batches, so it matters in real-time mode only")
    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        """How long an element may wait for others before it is sent."""
        self._settings.accepted["buffer-timeout"] = check_buffer_timeout(timeout_millis)
        if timeout_millis >= 0:
            self._settings.set(job.BUFFER_TIMEOUT_MS, timeout_millis)
        return self

    def get_buffer_timeout(self) -> int:
        """How long an element may wait, in milliseconds, as it was set; 100 if it was not."""
        return int(self._settings.accepted.get("buffer-timeout", 100))

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Run every operator in a task of its own."""
        self._settings.set(job.OPERATOR_CHAINING, False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Whether operators that follow each other share a task."""
        return self._settings.get(job.OPERATOR_CHAINING)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """They share a task."""
        return True

    def enable_checkpointing(
        self, interval: int, mode: CheckpointingMode | None = None
    ) -> StreamExecutionEnvironment:
        """Record a checkpoint every so many milliseconds."""
        config = self.get_checkpoint_config().set_checkpoint_interval(interval)
        if mode is not None:
            config.set_checkpointing_mode(mode)
        return self

    def get_checkpoint_interval(self) -> int:
        """Shortest time between two recorded checkpoints, in milliseconds."""
        return self.get_checkpoint_config().get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """The promise of checkpoints, as it was set; state is exactly-once with both."""
        return self.get_checkpoint_config().get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """Another name of :meth:`get_checkpointing_mode`."""
        return self.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether checkpoints may overtake elements, as it was set."""
        return self.get_checkpoint_config().is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether checkpoints overtake elements everywhere, as it was set."""
        return self.get_checkpoint_config().is_force_unaligned_checkpoints()

    def enable_changelog_state_backend(self, enabled: bool) -> StreamExecutionEnvironment:
        """Write only what changed in the state with each checkpoint."""
        self._settings.set(job.STATE_CHANGELOG, enabled)
        return self

    @same_and("where nothing was set only what changed is written, too")
    def is_changelog_state_backend_enabled(self) -> bool | None:
        """Whether only what changed in the state is written with each checkpoint; None where nothing was "
        "set."""
        return self._settings.get(job.STATE_CHANGELOG) if self._settings.is_set(job.STATE_CHANGELOG) else None

    def set_default_savepoint_directory(self, directory: str) -> StreamExecutionEnvironment:
        """Set the directory of savepoints that are given none."""
        self._settings.set(job.SAVEPOINT_DIR, directory)
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """The directory of savepoints that are given none."""
        return self._settings.get(job.SAVEPOINT_DIR) or None

    def set_restart_strategy(
        self, restart_strategy: RestartStrategyConfiguration
    ) -> StreamExecutionEnvironment:
        """Set what happens when the job fails; PyFlink before 2.0 had it."""
        for key, value in restart_strategy.options().items():
            self.set_config(key, value)
        return self

    def set_state_backend(self, state_backend: StateBackend) -> StreamExecutionEnvironment:
        """Set where keyed state lives; PyFlink before 2.0 had it."""
        self._settings.set(job.STATE_BACKEND, state_backend.option_value)
        return self

    @differs("resources are kept and reserve nothing: all slots are alike")
    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> StreamExecutionEnvironment:
        """Say the resources of a group."""
        return self

    # --- Python and Java around the job ----------------------------------------------------

    def add_python_file(self, file_path: str) -> None:
        """Add a module, an archive of modules or a directory of them to the search path of the workers."""
        asked_by = f"{call_origin()}: add_python_file()"
        add_file(self._settings.files, python_file(file_path, asked_by), asked_by)

    @differs("sees that they are installed here: the workers' environment is packed by yarnflow env pack")
    def set_python_requirements(
        self, requirements_file_path: str, requirements_cache_dir: str | None = None
    ) -> None:
        """Say which packages the workers need."""
        check_requirements(requirements_file_path, call_origin())

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Unpack an archive for the workers, in a directory of their working directory.

        Parameters
        ----------
        target_dir : str, optional
            Name of that directory; default: the archive's.
        """
        origin = call_origin()
        added = archive(archive_path, target_dir, origin)
        add_file(self._settings.files, added, f"{origin}: add_python_archive()")

    def set_python_executable(self, python_exec: str) -> None:
        """Set the interpreter of the workers."""
        self._settings.set(python.PYTHON_EXECUTABLE, python_exec)

    @same_and("jars are for Spark: those of Flink are left out, with a note when the job is submitted")
    def add_jars(self, *jars_path: str) -> None:
        """Add jars to the class path of the job's driver and executors; they are shipped."""
        self._add_to_list(job.PIPELINE_JARS, jars_path)

    @same_and("jars are for Spark: those of Flink are left out, with a note when the job is submitted")
    def add_classpaths(self, *classpaths: str) -> None:
        """Add jars that are on all machines to the class path of the job's driver and executors."""
        self._add_to_list(job.PIPELINE_CLASSPATHS, classpaths)

    def _add_to_list(self, option: ConfigOption[str], items: tuple[str, ...]) -> None:
        known = self._settings.get(option).split(";")
        self._settings.set(option, ";".join(dict.fromkeys(filter(None, (*known, *items)))))

    @same_and("kept: no Python function of Flink can read it; add_python_file() is for that")
    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Distribute a file to Java's functions."""
        self._settings.accepted[f"cached-file.{name}"] = file_path

    # --- sources ------------------------------------------------------------------------

    @same_and("takes DDL text or a Python type, too: the stream then has columns")
    def from_collection(
        self, collection: Iterable[object], type_info: object | None = None, *, schema: object | None = None
    ) -> DataStream:
        """A bounded stream of the program's own elements.

        Parameters
        ----------
        collection : iterable
            Elements.
        type_info : TypeInformation, str or type, optional
            One of Types: elements of this type.  ``"name STRING, n INT"``, a lone type or a Python type:
            columns, of values, tuples, Rows, dicts or dataclass instances.  None: the elements as they are.
        schema : str or type, optional
            Another name for ``type_info``.
        """
        define = definitions.collection(list(collection), schema if schema is not None else type_info)
        return self._source("Source: Collection Source", "from_collection", define, parallel=False)

    @same_and("the strategy may be left out")
    def from_source(
        self,
        source: Source,
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "",
        type_info: object | None = None,
    ) -> DataStream:
        """Read a source, with event time if the strategy tells it.

        Parameters
        ----------
        type_info : TypeInformation, optional
            What the elements are; another type than the source's is an error.
        """
        if not isinstance(source, Source):
            raise GraphError(
                f"{call_origin()}: from_source(): {source!r} is no source; wrap a DataSource of pyspark in "
                "PythonSource(…)"
            )
        define = definitions.source(source.operator)
        name = f"Source: {source_name or source.name}"
        stream = self._source(name, "from_source", define, source.parallel)
        if isinstance(type_info, TypeInformation) and type_info != stream.get_type():
            raise GraphError(
                f"{call_origin()}: from_source(): the source gives {stream.get_type()!r}, not {type_info!r}; "
                "drop type_info, or convert the elements by map(…)"
            )
        timed = self._timed(stream, source, watermark_strategy)
        sides = (stream._transformation, dict(source.side_outputs))
        self._pipeline.source_sides[timed._transformation] = sides
        return timed

    @staticmethod
    def _timed(
        stream: DataStream, source: Source, watermark_strategy: WatermarkStrategy | None
    ) -> DataStream:
        """A source's stream with event time if the strategy tells it."""
        if watermark_strategy is None:
            return stream
        timeless = watermark_strategy.out_of_orderness_ms is None or not source.timestamped
        if watermark_strategy.timestamp_assigner is None and timeless:
            # most sources of Spark do not know the time of their records; those that do tell it by themselves
            return stream
        return stream._assign(watermark_strategy, "from_source")

    @differs("takes sources of from_source")
    def add_source(
        self, source_func: Source, source_name: str = "Custom Source", type_info: object | None = None
    ) -> DataStream:
        """PyFlink's older name of :meth:`from_source`."""
        return self.from_source(source_func, None, source_name, type_info)

    @differs("takes AvroInputFormat; all else is read by from_source()")
    def create_input(self, input_format: InputFormat, type_info: object | None = None) -> DataStream:
        """Read the files of an input format."""
        if not isinstance(input_format, AvroInputFormat):
            raise unsupported(f"create_input({input_format!r})", "Spark reads by sources", "from_source(…)")
        return self.from_source(input_format.source(), None, "Custom File Source")

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

        Views show the event time of their streams as the field it was assigned from, else as ``event_time``.
        The result's event time is the one column of it that is event time, or a window of it.

        Parameters
        ----------
        query : str
            ``"SELECT … FROM clicks"``.
        schema : str or type, optional
            Fields of the result, where the client cannot tell them.
        **streams : DataStream
            ``clicks=stream``.
        """
        inputs = tuple(stream._input() for stream in streams.values())
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
        return self._submit(job_name).get_job_execution_result()

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """As :meth:`execute`, but return when the cluster has accepted the job."""
        return JobClient(self._submit(job_name))

    def _submit(self, job_name: str | None) -> SubmittedJob:
        executor = current_executor()
        graph = self._job_graph(job_name)
        self._pipeline.transformations.clear()
        return executor.submit(graph)

    def _execute_and_collect(self, job_name: str | None) -> ElementIterator:
        submitted = self._submit(job_name)
        if not hasattr(submitted, "collected"):
            raise ProgramError(
                "execute_and_collect(): elements do not come back from this target; write them to a sink"
            )
        return cast(CollectingJob, submitted).collected()

    @same_and("operators are yarnflow's, which PyFlink puts together in another way")
    def get_execution_plan(self) -> str:
        """The plan of the job as JSON text, in Flink's form; nothing is run."""
        from yarnflow.graph.plan import streaming_plan_json

        return streaming_plan_json(self._job_graph(None))

    def close(self) -> None:
        """Does nothing: the environment holds nothing; ``close_cluster`` ends a cluster of this process."""

    def _job_graph(self, job_name: str | None) -> JobGraph:
        if not self._pipeline.transformations:
            raise UnsupportedGraph(
                f"{call_origin()}: the program defines no operators that were not executed yet; "
                "read a source "
                "and write it to a sink first"
            )
        config = self.get_config()
        parallelism = self._settings.parallelism()
        settings = GraphSettings(
            job_name=self._settings.get(job.PIPELINE_NAME) or job_name or _program_name(),
            parallelism=parallelism,
            max_parallelism=self._settings.get(job.MAX_PARALLELISM),
            chaining=self._settings.get(job.OPERATOR_CHAINING),
            configuration=self._settings.of_job(parallelism),
            job_parameters=config.get_global_job_parameters(),
            auto_uids=config.has_auto_generated_uids_enabled(),
            files=dict(self._settings.files),
        )
        mode = self._settings.get(job.RUNTIME_MODE)
        self._settings.batch = mode == "BATCH"
        graph = generate_job_graph(self._pipeline.program(), settings, JobId(uuid.uuid4().hex))
        batch = runs_as_batch(graph, mode)
        if batch != self._settings.batch:
            self._settings.batch = batch
            graph = generate_job_graph(self._pipeline.program(), settings, graph.job_id)
        return self._in_its_mode(replace(graph, batch=batch))

    def _in_its_mode(self, graph: JobGraph) -> JobGraph:
        mode = chosen_mode(graph, self._settings.get(job.EXECUTION_MODE))
        if mode == MICRO_BATCH or self._settings.get(job.TASK_THREADS_PER_SLOT):
            return graph
        threads = {job.TASK_THREADS_PER_SLOT.key: str(stages(graph))}
        return replace(graph, configuration={**graph.configuration, **threads})


def _program_name() -> str:
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    return os.path.splitext(os.path.basename(path))[0] if path else "yarnflow job"
