"""Watermarks of programs that read several streams, of which some are silent or end."""

from __future__ import annotations

from typing import Any

import pytest

from yarnflow.api import RateSource, StreamExecutionEnvironment
from yarnflow.api.common import Duration, Types, WatermarkStrategy
from yarnflow.api.common.watermark_strategy import TimestampAssigner
from yarnflow.api.datastream import BroadcastProcessFunction, KeyedCoProcessFunction, KeyedProcessFunction
from yarnflow.api.datastream.state import MapStateDescriptor
from yarnflow.api.executor import use_executor
from yarnflow.operators.elements import Chunk
from yarnflow.operators.task.planner import LevelsPlan
from yarnflow.spark.translate.query_groups import query_groups
from yarnflow.testing.in_memory_levels import InMemoryLevels
from yarnflow.testing.kept_graph import KeptGraph

MINUTE_MS = 60_000


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value)


STRICT = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(EventTime())
IDLE = STRICT.with_idleness(Duration.of_minutes(1))


class Timer(KeyedProcessFunction, KeyedCoProcessFunction):
    """Emits the time of each element when the watermark reaches it."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        if ctx.timestamp() == value:
            ctx.timer_service().register_event_time_timer(value)

    process_element1 = process_element2 = process_element

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield timestamp


def whole(value: Any) -> int:
    return 0


def itself(value: Any) -> Any:
    return value


class Program:
    """Streams that never end and such that do, put together and run in memory."""

    def __init__(self) -> None:
        self.env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)
        self.plan: LevelsPlan
        self.job: InMemoryLevels
        #: sources say times, as those of columns do
        self.columns = False

    def endless(self) -> Any:
        return self.env.from_source(RateSource(1)).map(itself, Types.LONG())

    def collection(self) -> Any:
        return self.env.from_collection([1], Types.LONG()).map(itself, Types.LONG())

    def run(self, stream: Any) -> Program:
        """Plan the program whose results are those of the stream."""
        sink = stream.print()
        assert sink is not None
        kept = KeptGraph()
        with use_executor(kept):
            self.env.execute_async("planned")
        (group,) = query_groups(kept.graphs[0])
        assert group.levels is not None and not group.bounded
        self.plan = group.levels
        self.job = InMemoryLevels([source.level for source in self.plan.sources], self.plan.levels, 128)
        return self

    def batch(self, now_ms: int, *inputs: list[int]) -> list[str]:
        """What is new in the sink after a micro-batch with elements of some sources."""
        before = len(self._printed())
        chunks = {
            number: [[Chunk(values, [*values] if self.columns else None)]]
            for number, values in enumerate(inputs)
            if values
        }
        self.job.run_batch(chunks, now_ms, tick=self.plan.needs_ticks)
        return self._printed()[before:]

    def restart(self) -> None:
        """The job starts again from its state."""
        self.job.restart()

    def _printed(self) -> list[str]:
        return [line for lines in self.job.sinks.values() for line in lines]


def together(one: Any, other: Any) -> Any:
    return one.union(other).key_by(whole).process(Timer(), Types.LONG())


@pytest.mark.parametrize("put", ["union", "connect", "union of what is spread", "union behind keys"])
def test_a_stream_that_was_silent_for_long_holds_the_others_back_no_more(put: str) -> None:
    program = Program()
    one = program.endless().assign_timestamps_and_watermarks(STRICT)
    silent = program.endless().assign_timestamps_and_watermarks(IDLE)
    if put == "connect":
        result = one.key_by(whole).connect(silent.key_by(whole)).process(Timer(), Types.LONG())
    elif put == "union of what is spread":
        result = together(one, silent.rebalance().map(itself, Types.LONG()))
    elif put == "union behind keys":
        result = together(one, silent.key_by(whole).reduce(lambda left, right: right))
    else:
        result = together(one, silent)
    program.run(result)
    assert program.plan.needs_ticks
    assert program.batch(0, [5, 7], [1]) == []
    assert program.batch(59_999, [9]) == [], "it may yet have an element of time 2"
    assert program.batch(MINUTE_MS, [10, 11]) == ["1", "5", "7", "9", "10"]
    # it is waited for again when it has elements again
    assert program.batch(MINUTE_MS + 1, [20], [12]) == ["11"]
    assert program.batch(MINUTE_MS + 2, [30]) == []
    # the clock alone tells it
    assert program.batch(2 * MINUTE_MS) == []
    assert program.batch(2 * MINUTE_MS + 1) == ["12", "20"]


def test_a_stream_that_never_had_elements_becomes_idle_as_well() -> None:
    program = Program()
    one = program.endless().assign_timestamps_and_watermarks(STRICT)
    program.run(together(one, program.endless().assign_timestamps_and_watermarks(IDLE)))
    assert program.batch(1_000, [5, 7]) == []
    assert program.batch(1_000 + MINUTE_MS, [8]) == ["5", "7"]


@pytest.mark.parametrize("spread", [False, True])
def test_a_stream_was_not_silent_while_the_job_stood_still(spread: bool) -> None:
    program = Program()
    one, silent = program.endless(), program.endless()
    if spread:
        silent = silent.rebalance().map(itself, Types.LONG())
    strict, idle = one.assign_timestamps_and_watermarks(STRICT), silent.assign_timestamps_and_watermarks(IDLE)
    program.run(together(strict, idle))
    assert program.batch(0, [5, 7], [1]) == []
    program.restart()
    assert program.batch(5 * MINUTE_MS, [9]) == []
    assert program.batch(6 * MINUTE_MS - 1) == []
    assert program.batch(6 * MINUTE_MS) == ["1", "5", "7"]


@pytest.mark.parametrize(
    ("minutes", "waited"), [([1], 1), ([None], None), ([1, 2], 2), ([1, None], None)]
)
def test_a_stream_of_columns_holds_the_others_back_for_as_long_as_it_says(
    minutes: list[int | None], waited: int | None
) -> None:
    """One alone, or several together."""
    program = Program()
    program.columns = True
    one = program.endless().assign_timestamps_and_watermarks(STRICT)
    columns = []
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("timestamp")
    for idle in minutes:
        timed = strategy.with_idleness(Duration.of_minutes(idle)) if idle else strategy
        columns.append(program.env.from_source(RateSource(1)).assign_timestamps_and_watermarks(timed))
    silent = columns[0].union(*columns[1:]) if columns[1:] else columns[0]
    program.run(together(one, silent.map(itself, Types.LONG())))
    assert program.plan.needs_ticks == (waited is not None)
    assert program.batch(0, [5, 7], [1]) == []
    assert program.batch((waited or 3) * MINUTE_MS - 1, [9]) == []
    found = program.batch((waited or 3) * MINUTE_MS, [10, 11])
    assert found == (["1", "5", "7", "9", "10"] if waited else [])


def test_without_idleness_a_silent_stream_holds_the_others_back() -> None:
    program = Program()
    one, other = (program.endless().assign_timestamps_and_watermarks(STRICT) for _ in range(2))
    program.run(together(one, other))
    assert not program.plan.needs_ticks
    assert program.batch(0, [5, 7], [1]) == []
    assert program.batch(100 * MINUTE_MS, [9]) == []
    assert program.batch(100 * MINUTE_MS, [9], [8]) == ["1", "5", "7"]


def test_new_timestamps_end_the_idleness_of_what_is_before_them() -> None:
    program = Program()
    silent = program.endless().assign_timestamps_and_watermarks(IDLE).assign_timestamps_and_watermarks(STRICT)
    program.run(together(program.endless().assign_timestamps_and_watermarks(STRICT), silent))
    assert not program.plan.needs_ticks
    assert program.batch(0, [5, 7], [1]) == []
    assert program.batch(MINUTE_MS, [9]) == []


def test_one_stream_alone_needs_no_clock_for_its_idleness() -> None:
    program = Program()
    timed = program.endless().assign_timestamps_and_watermarks(IDLE)
    program.run(timed.key_by(whole).process(Timer(), Types.LONG()))
    assert not program.plan.needs_ticks
    assert program.batch(0, [5, 7]) == ["5"]
    assert program.batch(2 * MINUTE_MS, [8]) == ["7"]


@pytest.mark.parametrize("timed", [True, False])
def test_a_collection_ends_before_a_stream_does(timed: bool) -> None:
    """It is read in the first micro-batch; Flink sends the last watermark at its end."""
    program = Program()
    one, few = program.endless().assign_timestamps_and_watermarks(STRICT), program.collection()
    program.run(together(one, few.assign_timestamps_and_watermarks(STRICT) if timed else few))
    assert not program.plan.needs_ticks
    assert program.batch(0, [5, 7], [1]) == (["1", "5"] if timed else ["5"])
    assert program.batch(1, [9]) == ["7"]


class Unchanged(BroadcastProcessFunction[Any, Any, Any]):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value

    def process_broadcast_element(self, value: Any, ctx: Any) -> Any:
        return []


def test_a_broadcast_collection_holds_no_watermark_back() -> None:
    program = Program()
    timed = program.endless().assign_timestamps_and_watermarks(STRICT)
    rules = program.collection().broadcast(MapStateDescriptor("rules", Types.LONG(), Types.LONG()))
    ruled = timed.connect(rules).process(Unchanged(), Types.LONG())
    program.run(ruled.key_by(whole).process(Timer(), Types.LONG()))
    assert program.batch(0, [5, 7], [1]) == ["5"]
    assert program.batch(1, [9]) == ["7"]


def test_what_a_collection_alone_told_last_is_not_lost() -> None:
    """Behind a level without state as well."""
    program = Program()
    timed = program.collection().assign_timestamps_and_watermarks(STRICT)
    spread = timed.rebalance().map(itself, Types.LONG()).set_parallelism(2)
    program.endless().print()
    program.run(spread.key_by(whole).process(Timer(), Types.LONG()))
    number = next(n for n, source in enumerate(program.plan.sources) if source.level.operators[1:])
    assert program.batch(0, *([[]] * number), [5, 7]) == ["5"]
