"""Configurations, checkpoints, restart strategies and the other settings of PyFlink."""

from __future__ import annotations

import copy
import datetime
import pickle

import pytest

from tests.api.conftest import Jobs
from tests.api.environments import environment, options
from yarnflow.api import RateSource
from yarnflow.api.common import (
    ConfigOptions,
    Configuration,
    Duration,
    Instant,
    RestartStrategies,
    Time,
    WatermarkStrategy,
)
from yarnflow.api.common.constants import MAX_LONG_VALUE, MIN_LONG_VALUE
from yarnflow.api.datastream import (
    CheckpointingMode,
    EmbeddedRocksDBStateBackend,
    ExternalizedCheckpointRetention,
    FileSystemCheckpointStorage,
    HashMapStateBackend,
    JobManagerCheckpointStorage,
    MemorySize,
    RuntimeExecutionMode,
    SlotSharingGroup,
)
from yarnflow.errors import GraphError, UnknownOption, UnsupportedCall, UnsupportedGraph
from yarnflow.graph import operators as o


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
