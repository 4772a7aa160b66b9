"""Configurations, checkpoints, restart strategies and the other settings of PyFlink."""

from __future__ import annotations

import copy
import datetime
import io
import os
import pickle
import threading
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import Jobs
from yarnflow.api import RateSource, StreamExecutionEnvironment
from yarnflow.api.building import shipped
from yarnflow.api.common import (
    CompletableFuture,
    ConfigOptions,
    Configuration,
    Duration,
    Encoder,
    Instant,
    JobClient,
    JobID,
    JobStatus,
    JsonRowDeserializationSchema,
    RestartStrategies,
    SimpleStringSchema,
    Time,
    Types,
    WatermarkStrategy,
)
from yarnflow.api.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from yarnflow.api.datastream import (
    CheckpointingMode,
    CloseableIterator,
    EmbeddedRocksDBStateBackend,
    ExternalizedCheckpointRetention,
    FileSystemCheckpointStorage,
    HashMapStateBackend,
    JobManagerCheckpointStorage,
    MemorySize,
    RuntimeExecutionMode,
    SlotSharingGroup,
)
from yarnflow.api.datastream.connectors import FileSink, FileSource, NumberSequenceSource, StreamFormat
from yarnflow.api.datastream.connectors.file_system import OutputFileConfig, RollingPolicy
from yarnflow.api.datastream.connectors.pulsar import PulsarSource
from yarnflow.api.executor import JobExecutionResult, use_executor
from yarnflow.core.ids import JobId
from yarnflow.errors import (
    GraphError,
    ProgramError,
    SchemaError,
    UnknownOption,
    UnsupportedCall,
    UnsupportedGraph,
)
from yarnflow.graph import operators as o
from yarnflow.graph.connectors import sinks, sources
from yarnflow.graph.job_graph import JobGraph


def environment(configuration: Any = None) -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(configuration)


def options(env: StreamExecutionEnvironment) -> dict[str, str]:
    return dict(env._settings.values)


def test_configuration() -> None:
    configuration = Configuration.from_dict({"a": "x"})
    configuration.set_integer("i", 5).set_boolean("b", True).set_float("f", 1.5)
    configuration.set_bytearray("y", bytearray(b"\x00\xff"))
    assert configuration.get_string("a", "") == "x" and configuration.get_string("z", "none") == "none"
    assert (configuration.get_integer("i", 0), configuration.get_integer("z", 7)) == (5, 7)
    assert configuration.get_boolean("b", False) and not configuration.get_boolean("z", False)
    assert (configuration.get_float("f", 0), configuration.get_float("z", 2)) == (1.5, 2.0)
    assert configuration.get_bytearray("y", bytearray()) == bytearray(b"\x00\xff")
    assert configuration.get_bytearray("z", bytearray(b"n")) == bytearray(b"n")
    with pytest.raises(ValueError, match="option a: 'x' is neither true nor false"):
        configuration.get_boolean("a", False)
    other = Configuration(configuration)
    assert other == configuration == copy.deepcopy(configuration) and hash(other) == hash(configuration)
    assert other.remove_config("a") and not other.remove_config("a") and other != configuration
    assert other.add_all(Configuration.from_dict({"k": "v"}), "p.").get_string("p.k", "") == "v"
    target: dict[str, str] = {}
    Configuration.from_dict({"a": "x"}).add_all_to_dict(target)
    assert target == {"a": "x"} and "{a=x, " in str(configuration)
    assert configuration.key_set() == {"a", "i", "b", "f", "y"} and configuration.contains_key("a")


@pytest.mark.parametrize(
    ("text", "found"), [("", []), ("a;b", ["a", "b"]), ("['a', 'b']", ["a", "b"]), ("[a, b]", ["a", "b"])]
)
def test_lists_in_configurations(text: str, found: list[str]) -> None:
    assert Configuration.parse_list_value(text) == found


def test_configurations_of_environments() -> None:
    configuration = Configuration().set_string("parallelism.default", "3").set_string("spark.x", "1")
    env = environment(configuration)
    assert env.get_parallelism() == 3 and options(env) == {"parallelism.default": "3", "spark.x": "1"}
    env.configure(Configuration.from_dict({"pipeline.name": "n"}))
    assert options(env)["pipeline.name"] == "n"
    with pytest.raises(UnknownOption):
        environment({"parallelism.defualt": "3"})
    said = r"^test_settings.py:\d+: option parallelism.defualt .*mean parallelism.default\?"
    with pytest.warns(UserWarning, match=said):
        env.configure(Configuration.from_dict({"parallelism.defualt": "3"}))
    batch = environment(Configuration.from_dict({"execution.runtime-mode": "BATCH"}))
    assert options(batch)["execution.runtime-mode"] == "BATCH"


def test_options_of_programs() -> None:
    option = ConfigOptions.key("k").int_type().default_value(5)
    assert (option.key, option.value_type, option.default) == ("k", int, 5)
    assert ConfigOptions.key("k").string_type().no_default_value().default is None
    kinds = ("boolean_type", "long_type", "float_type", "double_type")
    made = [getattr(ConfigOptions.key("k"), kind)().no_default_value().value_type for kind in kinds]
    assert made == [bool, int, float, float]


def test_checkpoints() -> None:
    env = environment().enable_checkpointing(5_000, CheckpointingMode.AT_LEAST_ONCE)
    config = env.get_checkpoint_config()
    config.set_checkpoint_timeout(60_000).set_min_pause_between_checkpoints(10)
    config.set_externalized_checkpoint_retention(ExternalizedCheckpointRetention.DELETE_ON_CANCELLATION)
    assert options(env) == {
        "execution.checkpointing.interval": "5000 ms",
        "execution.checkpointing.timeout": "60000 ms",
        "execution.checkpointing.min-pause": "10 ms",
        "execution.checkpointing.externalized-checkpoint-retention": "DELETE_ON_CANCELLATION",
    }
    assert (env.get_checkpoint_interval(), config.get_checkpoint_timeout()) == (5_000, 60_000)
    assert config.get_min_pause_between_checkpoints() == 10 and config.is_checkpointing_enabled()
    assert config.is_externalized_checkpoints_enabled()
    assert env.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE


def test_checkpoint_settings_without_effect_can_be_read_back() -> None:
    env = environment()
    config = env.get_checkpoint_config()
    config.set_max_concurrent_checkpoints(3).set_tolerable_checkpoint_failure_number(2)
    config.enable_unaligned_checkpoints().set_aligned_checkpoint_timeout(Duration.of_seconds(1))
    config.set_force_unaligned_checkpoints()
    assert config.get_max_concurrent_checkpoints() == 3
    assert config.get_tolerable_checkpoint_failure_number() == 2
    assert not env.is_unaligned_checkpoints_enabled() and env.is_force_unaligned_checkpoints()
    assert config.get_alignment_timeout() == Duration(1_000)
    assert not config.is_fail_on_checkpointing_errors() and options(env) == {}
    env.enable_checkpointing(10)
    assert env.is_unaligned_checkpoints_enabled()


def test_execution_config(jobs: Jobs) -> None:
    config = jobs.env.get_config()
    config.set_parallelism(2).set_max_parallelism(9).set_task_cancellation_timeout(5_000)
    config.set_global_job_parameters({"limit": "5"}).enable_object_reuse()
    assert config == jobs.env.get_config() and config.is_object_reuse_enabled()
    assert (jobs.env.get_parallelism(), jobs.env.get_max_parallelism()) == (2, 9)
    assert config.get_task_cancellation_timeout() == 5_000
    jobs.rows("a INT").print()
    assert jobs.graph().job_parameters == {"limit": "5"}
    config.disable_auto_generated_uids()
    jobs.rows("a INT").print()
    with pytest.raises(UnsupportedGraph, match="has no uid"):
        jobs.env.execute()


def test_environment_settings() -> None:
    env = environment().disable_operator_chaining().enable_changelog_state_backend(False)
    env.set_default_savepoint_directory("hdfs://s").set_state_backend(HashMapStateBackend())
    env.set_python_executable("python3")
    assert options(env) == {
        "pipeline.operator-chaining.enabled": "false",
        "state.changelog.enabled": "false",
        "execution.checkpointing.savepoint-dir": "hdfs://s",
        "state.backend.type": "hashmap",
        "python.executable": "python3",
    }
    assert not env.is_chaining_enabled() and not env.is_changelog_state_backend_enabled()
    assert env.get_default_savepoint_directory() == "hdfs://s"
    assert env.set_buffer_timeout(7).get_buffer_timeout() == 7
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    assert options(env)["execution.runtime-mode"] == "BATCH"
    env.add_jars("file:///x/kafka.jar", "b.jar")
    env.add_jars("b.jar", "c.jar")
    env.add_classpaths("file:///opt/d.jar")
    assert options(env)["pipeline.jars"] == "file:///x/kafka.jar;b.jar;c.jar"
    assert options(env)["pipeline.classpaths"] == "file:///opt/d.jar"


def test_what_flink_says_where_nothing_was_set() -> None:
    config = (env := environment()).get_checkpoint_config()
    assert env.is_changelog_state_backend_enabled() is None
    assert not config.is_checkpointing_enabled() and config.get_checkpoint_interval() == -1
    kept = ExternalizedCheckpointRetention
    assert config.get_externalized_checkpoint_retention() is kept.NO_EXTERNALIZED_CHECKPOINTS
    assert not config.is_externalized_checkpoints_enabled()
    env.enable_checkpointing(500)
    assert config.is_checkpointing_enabled() and config.get_checkpoint_interval() == 500


def test_files_for_the_workers(jobs: Jobs, tmp_path: Path) -> None:
    (tmp_path / "lib" / "inner").mkdir(parents=True)
    (tmp_path / "lib" / "inner" / "deep.py").write_text("N = 1")
    (tmp_path / "one.py").write_text("N = 2")
    with zipfile.ZipFile(tmp_path / "a-1.whl", "w") as wheel:
        wheel.writestr("a.py", "N = 3")
    env = jobs.env
    for name in ("lib", "one.py", "a-1.whl"):
        env.add_python_file(str(tmp_path / name))
    env.add_python_archive(str(tmp_path / "a-1.whl"), "data")
    env.add_python_archive(str(tmp_path / "a-1.whl"))
    env.register_cached_file(str(tmp_path / "one.py"), "one")
    env.from_collection([1]).print()
    files = jobs.graph().files
    assert sorted(files) == [
        "archives/a-1.whl/a-1.whl", "archives/data/a-1.whl", "python/a-1.whl.zip", "python/lib.zip",
        "python/one.py",
    ]  # fmt: skip
    assert files["python/one.py"] == b"N = 2"
    with zipfile.ZipFile(io.BytesIO(files["python/lib.zip"])) as made:
        assert made.namelist() == ["inner/deep.py"]


def test_files_that_cannot_be_shipped(tmp_path: Path) -> None:
    env = environment()
    unread = r"^test_settings\.py:\d+: add_python_file\(\): .*none\.py cannot be read"
    with pytest.raises(GraphError, match=unread):
        env.add_python_file(str(tmp_path / "none.py"))
    with pytest.raises(GraphError, match="target directory 'a/b' must be a plain name"):
        env.add_python_archive(str(tmp_path), "a/b")
    requirements = tmp_path / "requirements.txt"
    named = "# tests\n-r other.txt\npytest>=1  # here\nhttps://host/x.whl\n"
    requirements.write_text(named + "no-such-package-y>=1 ; python_version < '3'\n")
    env.set_python_requirements(str(requirements))
    requirements.write_text("pytest\nno-such-package-x==1\n")
    with pytest.raises(GraphError, match="no-such-package-x, which is not installed here.*yarnflow env pack"):
        env.set_python_requirements(str(requirements))


def test_files_of_one_name_are_refused_unless_they_are_the_same(tmp_path: Path) -> None:
    for place in ("a", "b", "c"):
        (tmp_path / place / "lib").mkdir(parents=True)
        (tmp_path / place / "lib" / "m.py").write_text(f"N = {place in 'ab'}")
        (tmp_path / place / "m.txt").write_text(f"N = {place in 'ab'}")
    env = environment()
    for place in ("a", "b"):
        env.add_python_file(str(tmp_path / place / "lib"))
        env.add_python_archive(str(tmp_path / place / "m.txt"))
    with pytest.raises(GraphError, match=r"add_python_file\(\): two different files .* python/lib\.zip"):
        env.add_python_file(str(tmp_path / "c" / "lib"))
    with pytest.raises(GraphError, match=r"^test_.*\d: add_python_archive\(\): two different files"):
        env.add_python_archive(str(tmp_path / "c" / "m.txt"))


def test_all_files_together_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "_MAX_BYTES", 1000)
    (tmp_path / "lib").mkdir()
    for name in ("one", "two", "lib/three", "lib/four", "lib/five"):
        (tmp_path / f"{name}.py").write_bytes(os.urandom(400))
    env = environment()
    with pytest.raises(GraphError, match=r"add_python_file\(\): .*lib: \d+ bytes .* at most 1000"):
        env.add_python_file(str(tmp_path / "lib"))
    env.add_python_file(str(tmp_path / "one.py"))
    env.add_python_file(str(tmp_path / "two.py"))
    (tmp_path / "six.py").write_bytes(os.urandom(400))
    with pytest.raises(GraphError, match="all files of the job together: 1200 bytes"):
        env.add_python_file(str(tmp_path / "six.py"))


def test_directories_are_shipped_without_hidden_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lib = tmp_path / ".work" / "lib"
    for name in (".git/HEAD", ".env", "__pycache__/m.pyc", "inner/.cache/x.py", "inner/m.py"):
        (lib / name).parent.mkdir(parents=True, exist_ok=True)
        (lib / name).write_text("secret")
    _, content = shipped.python_file(str(lib), "-pyfs")
    with zipfile.ZipFile(io.BytesIO(content)) as made:
        assert made.namelist() == ["inner/m.py"]

    def refuse(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(GraphError, match=r"^-pyfs: .*m\.py cannot be read: Permission denied"):
        shipped.python_file(str(lib), "-pyfs")


def test_restart_strategies() -> None:
    strategies = (
        RestartStrategies.no_restart(),
        RestartStrategies.fixed_delay_restart(3, 5_000),
        RestartStrategies.failure_rate_restart(2, datetime.timedelta(minutes=1), 10),
        RestartStrategies.fall_back_restart(),
    )
    assert [strategy.options() for strategy in strategies] == [
        {"restart-strategy.type": "none"},
        {
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "3",
            "restart-strategy.fixed-delay.delay": "5000 ms",
        },
        {
            "restart-strategy.type": "failure-rate",
            "restart-strategy.failure-rate.max-failures-per-interval": "2",
            "restart-strategy.failure-rate.failure-rate-interval": "60000 ms",
            "restart-strategy.failure-rate.delay": "10 ms",
        },
        {},
    ]
    env = environment().set_restart_strategy(strategies[1])
    assert options(env) == strategies[1].options()
    assert strategies[1].get_restart_attempts() == 3
    assert strategies[1].get_delay_between_attempts_interval() == datetime.timedelta(seconds=5)
    assert (strategies[2].get_max_failure_rate(), strategies[2].get_failure_interval().seconds) == (2, 60)
    assert "none" in strategies[0].get_description()
    with pytest.raises(TypeError, match="the delay between attempts is 'x'"):
        RestartStrategies.fixed_delay_restart(3, "x")  # type: ignore[arg-type]


def test_lengths_of_time() -> None:
    assert Duration.of_nanos(2_999_999) == Duration.of_millis(2)
    assert Duration.of_days(1).to_millis() == 86_400_000 == Time.days(1).to_milliseconds()
    assert Time.minutes(2) == Time.seconds(120) != Time.hours(2) and str(Time(5)) == "5 ms"
    assert len({Time(5), Time(5)}) == 1
    assert (MAX_LONG_VALUE, MIN_LONG_VALUE) == (2**63 - 1, -(2**63))
    assert WatermarkStrategy.for_bounded_out_of_orderness(Time.seconds(1)).out_of_orderness_ms == 1_000


@pytest.mark.parametrize("millis", [0, 1, 1_234, -1, -1_500])
def test_instants(millis: int) -> None:
    assert Instant.of_epoch_milli(millis).to_epoch_milli() == millis
    assert repr(Instant(1, 2)) == "Instant<1, 2>"


def test_slot_sharing_groups(jobs: Jobs) -> None:
    group = SlotSharingGroup.builder("g").set_cpu_cores(2).set_task_heap_memory_mb(5).set_managed_memory_mb(
        1
    ).set_task_off_heap_memory(MemorySize(bytes_size=9)).set_external_resource("gpu", 1).build()
    assert (group.get_name(), group.get_cpu_cores(), group.get_external_resources()) == ("g", 2, {"gpu": 1})
    assert group.get_task_heap_memory() == MemorySize.of_mebi_bytes(5) > MemorySize(bytes_size=9)
    assert group == group and group != SlotSharingGroup.builder("g").build()
    jobs.env.register_slot_sharing_group(group)
    jobs.rows("a INT").filter("a > 1").slot_sharing_group(group).print().slot_sharing_group("h")
    assert [n.slot_sharing_group for n in jobs.graph().nodes] == ["default", "g", "h"]
    size = MemorySize.of_mebi_bytes(3 << 20)
    assert (size.get_kibi_bytes(), size.get_gibi_bytes(), size.get_tebi_bytes()) == (3 << 30, 3 << 10, 3)
    with pytest.raises(UnsupportedCall):
        size.get_java_memory_size()


def test_state_backends_and_storages() -> None:
    backend = EmbeddedRocksDBStateBackend(True)
    backend.set_db_storage_paths("/a", "/b")
    backend.set_number_of_transfer_threads(2)
    assert backend.get_db_storage_paths() == ["/a", "/b"] and backend.is_incremental_checkpoints_enabled()
    assert backend.get_number_of_transfer_threads() == 2 and backend.option_value == "rocksdb"
    assert JobManagerCheckpointStorage("/c").get_max_state_size() == 5 << 20
    assert FileSystemCheckpointStorage("/c").get_checkpoint_path() == "/c"
    with pytest.raises(TypeError):
        FileSystemCheckpointStorage()


# --- connectors and formats -------------------------------------------------------------------


def test_files_as_pyflink_names_them(jobs: Jobs) -> None:
    builder = FileSource.for_record_stream_format(StreamFormat.text_line_format(), "/in")
    source = builder.process_static_file_set().build()
    stream = jobs.env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
    policy = RollingPolicy.default_rolling_policy()
    name = OutputFileConfig.builder().with_part_prefix("p").build()
    writes = FileSink.for_row_format("/out", Encoder.simple_string_encoder())
    stream.sink_to(writes.with_rolling_policy(policy).with_output_file_config(name).build())
    nodes = jobs.graph().nodes
    assert isinstance(nodes[0].operator, sources.FileSource) and nodes[0].operator.format == "text"
    assert nodes[1].operator == sinks.FileSink("/out", "text", prefix="p", part_bytes=128 * 1024 * 1024)
    latin = FileSource.for_record_stream_format(StreamFormat.text_line_format("latin-1"), "/a", "/b").build()
    operator, _ = latin.operator()
    assert isinstance(operator, sources.FileSource)
    assert operator.path == "{/a,/b}"
    assert operator.options == {"encoding": "latin-1", "recursiveFileLookup": "true"}


def test_elements_become_files_where_they_have_columns(jobs: Jobs) -> None:
    stream = jobs.env.from_collection([("a", 1)])
    stream.sink_to(FileSink("/o", "text"))
    jobs.graph()
    stream.sink_to(FileSink("/o", "csv"))
    with pytest.raises(SchemaError, match=r"sink_to\(\): .*have no columns"):
        jobs.env.execute()


def test_number_sequences(jobs: Jobs) -> None:
    jobs.env.from_source(NumberSequenceSource(1, 5), WatermarkStrategy.no_watermarks(), "numbers").print()
    node = jobs.graph().nodes[0]
    assert node.operator == sources.SequenceSource(1, 5)
    assert node.output_schema.scalar


def test_number_sequences_have_limits() -> None:
    NumberSequenceSource(1, 10**10)
    NumberSequenceSource(2**63 - 2, 2**63 - 1)
    for start, end in ((0, 10**10), (0, 2**63 - 1)):
        said = r"^test_settings\.py:\d+: .* more than 10,000,000,000 numbers; .* RateSource"
        with pytest.raises(GraphError, match=said):
            NumberSequenceSource(start, end)
    for start, end in ((2**63 - 1, 2**63), (-(2**63) - 1, 0)):
        with pytest.raises(GraphError, match=r"^test_settings\.py:\d+: .* not numbers of 64 bits"):
            NumberSequenceSource(start, end)


def test_connectors_there_are_not() -> None:
    with pytest.raises(UnsupportedCall, match="PulsarSource.builder: "):
        PulsarSource.builder()


def test_formats_of_messages() -> None:
    kind = Types.ROW_NAMED(["a"], [Types.INT()])
    schema = JsonRowDeserializationSchema.builder().type_info(kind).ignore_parse_errors().build()
    assert schema._read().element_type == kind and schema._read().ignore_errors
    assert SimpleStringSchema()._read().element_type == Types.STRING()
    with pytest.raises(SchemaError, match="type_info"):
        JsonRowDeserializationSchema.builder().build()
    with pytest.raises(SchemaError, match="JSON objects become rows"):
        JsonRowDeserializationSchema.builder().type_info(Types.INT())


# --- jobs ----------------------------------------------------------------------------------------


class FakeJob:
    """A job that is over."""

    job_id = JobId("a" * 32)

    def __init__(self) -> None:
        self.cancelled = False
        self.savepoints: list[tuple[str, bool, bool]] = []

    def get_job_status(self) -> JobStatus:
        return JobStatus.FINISHED

    def cancel(self) -> None:
        self.cancelled = True

    def begin_savepoint(
        self, target_dir: str, *, stop: bool = False, drain: bool = False
    ) -> Callable[[], str]:
        self.savepoints.append((target_dir, stop, drain))
        return lambda: f"{target_dir or '/default'}/savepoint-1"

    def get_job_execution_result(self) -> JobExecutionResult:
        return JobExecutionResult(self.job_id, 5)


class FakeElements(Iterator[Any]):
    """Some letters; asked for one more the job would wait for ever."""

    def __init__(self) -> None:
        self.left = list("abc")
        self.closed = 0

    def __next__(self) -> Any:
        if not self.left:
            raise StopIteration
        return self.left.pop(0)

    def close(self) -> None:
        self.closed += 1


class CollectingFake(FakeJob):
    def __init__(self) -> None:
        super().__init__()
        self.elements: list[FakeElements] = []

    def collected(self) -> FakeElements:
        self.elements.append(FakeElements())
        return self.elements[-1]


class FakeExecutor:
    def __init__(self, job: FakeJob) -> None:
        self.job = job
        self.graphs: list[JobGraph] = []

    def submit(self, job_graph: JobGraph) -> FakeJob:
        self.graphs.append(job_graph)
        return self.job


def test_job_clients() -> None:
    job = FakeJob()
    client = JobClient(job)
    assert client.get_job_id() == JobID("a" * 32) and client.job_id == "a" * 32
    status = client.get_job_status().result()
    assert status is JobStatus.FINISHED and status.is_terminal_state() and status.is_globally_terminal_state()
    assert client.get_job_execution_result().result().get_net_runtime() == 5
    assert client.cancel().result() is None and job.cancelled
    saved = client.trigger_savepoint("/s")
    assert job.savepoints == [("/s", False, False)], "it begins before anybody asks for its result"
    assert saved.result() == "/s/savepoint-1"
    assert client.stop_with_savepoint(False).result() == "/default/savepoint-1"
    client.stop_with_savepoint(True, "/s")
    assert job.savepoints[1:] == [("", True, False), ("/s", True, True)]
    with pytest.raises(UnsupportedCall, match="accumulators"):
        client.get_accumulators()
    result = JobExecutionResult(JobId("b" * 32), 5)
    assert result.get_all_accumulator_results() == {}
    assert result.get_accumulator_result("n") is None


def test_futures() -> None:
    calls: list[int] = []

    def compute() -> int:
        calls.append(1)
        return 7

    future = CompletableFuture(compute)
    assert str(future) == "CompletableFuture[Not completed]"
    assert (future.result(), future.result(), future.exception(), calls) == (7, 7, None, [1])
    assert future.done() and not future.cancel() and not future.cancelled()
    failed = CompletableFuture(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failed.result()
    assert isinstance(failed.exception(), ZeroDivisionError) and failed.done()


def test_futures_that_are_asked_without_waiting() -> None:
    go_on = threading.Event()
    future = CompletableFuture(lambda: go_on.wait(30))
    assert not future.done() and future.exception() is None
    go_on.set()
    assert future.result() is True and future.done()


def test_futures_that_are_given_up() -> None:
    go_on = threading.Event()
    future = CompletableFuture(lambda: go_on.wait(30))
    assert not future.done()
    assert future.cancel() and future.cancelled() and future.done()
    with pytest.raises(CancelledError):
        future.result()
    go_on.set()
    assert isinstance(future.exception(), CancelledError)


def test_an_interrupted_future_can_be_asked_again() -> None:
    answers: list[BaseException] = [KeyboardInterrupt()]

    def compute() -> int:
        if answers:
            raise answers.pop()
        return 7

    future = CompletableFuture(compute)
    with pytest.raises(KeyboardInterrupt):
        future.result()
    assert future.result() == 7


def test_elements_come_back_to_the_program() -> None:
    job = CollectingFake()
    executor = FakeExecutor(job)
    with use_executor(executor):
        stream = environment().from_collection([("a", 1)])
        collected = stream.execute_and_collect("collect")
        assert isinstance(collected, CloseableIterator)
        with collected as found:
            assert list(found) == ["a", "b", "c"]
        assert stream.execute_and_collect(limit=2) == ["a", "b"]
        assert stream.execute_and_collect(limit=4) == ["a", "b", "c"]
    wanted = [sinks.CollectSink(None), sinks.CollectSink(2), sinks.CollectSink(4)]
    assert [graph.nodes[-1].operator for graph in executor.graphs] == wanted
    assert executor.graphs[0].name == "collect"
    assert all(graph.collects for graph in executor.graphs)
    assert [elements.closed for elements in job.elements] == [1, 1, 1]


def test_a_limit_asks_for_no_further_element() -> None:
    job = CollectingFake()
    with use_executor(FakeExecutor(job)):
        environment().from_collection([1]).execute_and_collect(limit=2)
    assert job.elements[0].left == ["c"]


@pytest.mark.parametrize("limit", [0, -1, 1.5, True])
def test_limits_that_are_none(limit: Any) -> None:
    with use_executor(FakeExecutor(CollectingFake())), pytest.raises(GraphError, match="1 or more"):
        environment().from_collection([1]).execute_and_collect(limit=limit)


def test_targets_that_bring_nothing_back() -> None:
    with use_executor(FakeExecutor(FakeJob())), pytest.raises(ProgramError, match="do not come back"):
        environment().from_collection([1]).execute_and_collect()


def test_closing_an_iterator_stops_the_job() -> None:
    closed: list[bool] = []
    with CloseableIterator(iter([1]), lambda: closed.append(True)) as found:
        assert found.next() == 1
        with pytest.raises(StopIteration):
            found.next()
    assert closed == [True]


def test_negative_intervals() -> None:
    with pytest.raises(GraphError, match="-1 ms is below 0"):
        environment().get_config().set_auto_watermark_interval(-1)


def reduced(mode: RuntimeExecutionMode, *, bounded: bool = True) -> bool:
    """Whether a keyed reduction of such a job emits at the end only."""
    env = environment().set_runtime_mode(mode)
    none = WatermarkStrategy.no_watermarks()
    numbers = env.from_collection([1, 2]) if bounded else env.from_source(RateSource(1), none, "Rate")
    numbers.map(lambda n: n).key_by(lambda n: n).reduce(lambda a, b: a).print()
    (reduction,) = [n.operator for n in env._job_graph(None).nodes if n.name == "Reduce"]
    assert isinstance(reduction, o.ElementOperator)
    return bool(pickle.loads(reduction.closure.payload).at_end)


def test_the_runtime_mode_decides_what_reductions_emit() -> None:
    assert not reduced(RuntimeExecutionMode.STREAMING)
    assert reduced(RuntimeExecutionMode.BATCH)
    assert reduced(RuntimeExecutionMode.AUTOMATIC)
    assert not reduced(RuntimeExecutionMode.AUTOMATIC, bounded=False)
    with pytest.raises(UnsupportedGraph, match=r"test_settings.py:\d+: '.*Rate.*' does not end, and"):
        reduced(RuntimeExecutionMode.BATCH, bounded=False)


def test_the_default_of_environments_that_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamExecutionEnvironment, "_default_local_parallelism", None)
    first = environment()
    assert first.get_default_local_parallelism() >= 1
    first.set_default_local_parallelism(3)
    assert first.get_default_local_parallelism() == 3 and first.get_parallelism() == 1
    for options_around, parallelism in (
        ({"execution.target": "local"}, 3),
        ({"execution.target": "remote"}, 1),
        ({"execution.target": "local", "parallelism.default": "2"}, 2),
    ):
        with use_executor(FakeExecutor(FakeJob()), options_around):
            assert environment().get_parallelism() == parallelism
