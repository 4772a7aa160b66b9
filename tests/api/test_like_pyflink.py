"""What PyFlink 2.3 answers to small calls, as seen there: values read back, arguments it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from yarnflow.api.common import Configuration, Types, WatermarkStrategy
from yarnflow.api.datastream import (
    CheckpointingMode,
    DataStream,
    EmbeddedRocksDBStateBackend,
    FileSystemCheckpointStorage,
    KeyedStream,
    MemorySize,
    OutputTag,
    ProcessFunction,
    ProcessWindowFunction,
    SlotSharingGroup,
    StreamExecutionEnvironment,
)
from yarnflow.api.datastream.connectors.number_seq import NumberSequenceSource
from yarnflow.api.datastream.state import ReducingStateDescriptor
from yarnflow.api.datastream.window import EventTimeSessionWindows
from yarnflow.errors import GraphError, UnsupportedGraph


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def stream() -> DataStream:
    return environment().from_collection([1, 2], Types.INT())


class Spans(ProcessWindowFunction[Any, Any, Any, Any]):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield context.window()


def windowed(env: StreamExecutionEnvironment) -> Any:
    """Of no type, so that it can be given what it does not take."""
    return env.from_collection([1]).key_by(lambda v: v).window(EventTimeSessionWindows(1))


def test_sources_may_be_said_to_give_what_they_give() -> None:
    source = environment().from_source(NumberSequenceSource(1, 2), type_info=Types.LONG())
    assert source.get_type() == Types.LONG()


def test_a_configuration_gives_values_as_they_were_set() -> None:
    configuration = Configuration().set_string("a", "b").set_integer("c", 1).set_boolean("d", True)
    configuration.set_float("e", 1.5).set_bytearray("f", bytearray(b"\x01\xff"))
    values: dict[str, Any] = {}
    configuration.add_all_to_dict(values)
    assert values == {"a": "b", "c": 1, "d": True, "e": 1.5, "f": bytearray(b"\x01\xff")}
    assert configuration.get_string("c", "") == "1" and configuration.get_string("d", "") == "true"
    assert configuration.get_bytearray("f", bytearray()) == bytearray(b"\x01\xff")
    assert configuration.to_dict()["e"] == "1.5"
    assert str(Configuration().set_string("a", "b").set_boolean("c", False)) == "{a=b, c=false}"
    assert Configuration().set_integer("a", 1) == Configuration().set_string("a", "1")


def test_names_of_operators() -> None:
    source = stream()
    assert source.get_name() == "Collection Source"
    assert source.flat_map(lambda v: [v]).get_name() == "FlatMap"
    strategy = WatermarkStrategy.no_watermarks()
    assert source.assign_timestamps_and_watermarks(strategy).get_name() == "Timestamps/Watermarks"
    assert source.map(lambda v: v).name("Source: mine").get_name() == "Source: mine"


def test_checkpoints_that_are_not_enabled_promise_less() -> None:
    env = environment()
    config = env.get_checkpoint_config().set_checkpointing_mode(CheckpointingMode.EXACTLY_ONCE)
    config.enable_unaligned_checkpoints()
    assert config.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE
    assert not config.is_unaligned_checkpoints_enabled()
    env.enable_checkpointing(10)
    assert config.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
    assert config.is_unaligned_checkpoints_enabled()


def test_minus_one_is_the_default_parallelism() -> None:
    env = environment().set_parallelism(3)
    assert env.set_parallelism(-1).get_parallelism() == 1
    assert env.get_config().set_parallelism(4).set_parallelism(-1).get_parallelism() == 1
    mapped = stream().map(lambda v: v).set_parallelism(3).set_parallelism(-1)
    assert mapped._transformation.parallelism is None


@pytest.mark.parametrize(
    "wrong",
    [
        lambda env: env.enable_checkpointing(9),
        lambda env: env.get_checkpoint_config().set_checkpoint_timeout(9),
        lambda env: env.get_checkpoint_config().set_max_concurrent_checkpoints(0),
        lambda env: env.get_checkpoint_config().set_tolerable_checkpoint_failure_number(-1),
        lambda env: env.get_config().set_max_parallelism(0),
        lambda env: env.set_buffer_timeout(-2),
        lambda env: env.from_collection([1]).map(str).set_buffer_timeout("a"),
        lambda env: env.from_collection([1]).set_parallelism(-1),
        lambda env: env.from_source(NumberSequenceSource(1, 2), type_info=Types.STRING()),
        lambda env: windowed(env).trigger(3),
        lambda env: windowed(env).allowed_lateness("1 s"),
        lambda env: windowed(env).side_output_late_data("late"),
        lambda env: windowed(env).process(Spans()).get_side_output("late"),
    ],
)
def test_settings_that_flink_refuses(wrong: Callable[[StreamExecutionEnvironment], object]) -> None:
    with pytest.raises(GraphError, match=r"^test_like_pyflink.py:\d+: "):
        wrong(environment())


@pytest.mark.parametrize(
    "exchange", [DataStream.rebalance, DataStream.shuffle, DataStream.forward, DataStream.broadcast]
)
def test_an_exchange_is_no_operator(exchange: Callable[[DataStream], DataStream]) -> None:
    source = stream()
    shipped = exchange(source)
    for change in (
        lambda: shipped.name("a"),
        lambda: shipped.uid("a"),
        lambda: shipped.set_parallelism(1),
        lambda: shipped.disable_chaining(),
        lambda: shipped.get_name(),
    ):
        with pytest.raises(UnsupportedGraph, match=r"^test_like_pyflink.py:\d+: this stream is an exchange"):
            change()
    assert source.get_name() == "Collection Source" and not source._transformation.uid


def test_what_always_has_one_subtask_gets_no_others() -> None:
    env = environment()
    mapped = env.from_collection([1]).map(lambda v: v).force_non_parallel()
    mapped.set_parallelism(2).print()
    with pytest.raises(GraphError, match="'Map' always has one subtask; drop"):
        env.get_execution_plan()


def test_a_stream_with_times_is_no_longer_keyed() -> None:
    class Passed(ProcessFunction):
        def process_element(self, value: Any, ctx: Any) -> Any:
            yield value

    for source in (stream(), environment().from_collection([1], "INT")):
        keyed = source.key_by(lambda v: v)
        plain = keyed.assign_timestamps_and_watermarks(WatermarkStrategy.no_watermarks())
        assert not isinstance(plain, KeyedStream)
        plain.process(Passed())


def test_sizes_and_groups() -> None:
    sizes = [0, 5_000, 2_048, 3 << 20, 1 << 30, 5 << 40]
    shown = [str(MemorySize(bytes_size=size)) for size in sizes]
    assert shown == ["0 bytes", "5000 bytes", "2 kb", "3 mb", "1 gb", "5 tb"]
    builder = SlotSharingGroup.builder("g").set_cpu_cores(1.0).set_task_heap_memory_mb(100)
    group = builder.build()
    assert group.get_managed_memory() == group.get_task_off_heap_memory() == MemorySize(bytes_size=0)
    assert SlotSharingGroup.builder("g").build().get_managed_memory() is None
    wrong: list[Callable[[], object]] = [
        lambda: builder.set_cpu_cores(0.0),
        lambda: builder.set_task_heap_memory_mb(0),
        lambda: SlotSharingGroup.builder("g").set_cpu_cores(1.0).build(),
        lambda: SlotSharingGroup.builder("g").set_external_resource("gpu", 1.0).build(),
    ]
    for call in wrong:
        with pytest.raises(ValueError, match="slot sharing group 'g'"):
            call()


def test_small_objects() -> None:
    assert FileSystemCheckpointStorage("file:///c").get_write_buffer_size() == 4096
    assert FileSystemCheckpointStorage("file:///c", write_buffer_size=7).get_write_buffer_size() == 7
    with pytest.raises(ValueError, match="0 threads"):
        EmbeddedRocksDBStateBackend().set_number_of_transfer_threads(0)
    with pytest.raises(TypeError, match="side output 'late': 5 is no type"):
        OutputTag("late", 5)
    descriptor = ReducingStateDescriptor("sum", lambda a, b: a + b, Types.INT())
    assert descriptor.get_reduce_function().reduce(1, 2) == 3
