"""Keyed state of every kind, and timers of both time domains, as a PyFlink program has them."""

import sys
from fractions import Fraction

from pyflink.common import Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import AggregateFunction, KeyedProcessFunction, StreamExecutionEnvironment, TimeDomain
from pyflink.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)

from yarnflow.api import FileSink, FileSource

RESULT = Types.ROW_NAMED(["what", "k", "value"], [Types.STRING(), Types.STRING(), Types.STRING()])
#: seconds; the timers of both halves of the input
SOON, LATER = 3, 50
SECOND_HALF = 100
#: a timer of processing time that is registered before the state is recorded is due some minutes later
CLOCK_MS = 300_000
FOR_EVER, BRIEFLY = Time.days(36_500), Time.seconds(1)


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * 1000


class Mean(AggregateFunction):
    def create_accumulator(self):
        return (0, 0)

    def add(self, value, accumulator):
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator):
        return accumulator[0] / accumulator[1]

    def merge(self, a, b):
        return a[0] + b[0], a[1] + b[1]


def with_ttl(name, time_to_live):
    descriptor = ValueStateDescriptor(name, Types.LONG())
    descriptor.enable_time_to_live(StateTtlConfig.new_builder(time_to_live).build())
    return descriptor


class Remember(KeyedProcessFunction):
    """Gives all that it remembers of a key.

    Where nothing lies between the halves of the input, what an interval does is done at once.
    """

    def __init__(self, stopped):
        self.clock_ms = CLOCK_MS if stopped else 0
        self.briefly = BRIEFLY if stopped else Time.milliseconds(1)

    def open(self, runtime_context):
        pair = Types.TUPLE([Types.LONG(), Types.LONG()])
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        self.harmonic = runtime_context.get_state(
            ValueStateDescriptor("harmonic", Types.PICKLED_BYTE_ARRAY())
        )
        self.numbers = runtime_context.get_list_state(ListStateDescriptor("numbers", Types.LONG()))
        self.rests = runtime_context.get_map_state(
            MapStateDescriptor("rests", Types.STRING(), Types.LONG())
        )
        self.largest = runtime_context.get_reducing_state(
            ReducingStateDescriptor("largest", max, Types.LONG())
        )
        self.mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Mean(), pair))
        self.lasting = runtime_context.get_state(with_ttl("lasting", FOR_EVER))
        self.brief = runtime_context.get_state(with_ttl("brief", self.briefly))

    def process_element(self, value, ctx):
        key, n = value
        timers = ctx.timer_service()
        if self.count.value() is None:
            timers.register_event_time_timer(LATER * 1000)
            timers.register_processing_time_timer(timers.current_processing_time() + self.clock_ms)
        timers.register_event_time_timer((n + SOON) * 1000)
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.harmonic.update((self.harmonic.value() or Fraction(0)) + Fraction(1, n))
        self.numbers.add(n)
        rest = f"rest {n % 2}"
        self.rests.put(rest, (self.rests.get(rest) or 0) + 1)
        self.largest.add(-n if n == 8 else n)
        self.mean.add(n)
        yield Row("count", key, str(count))
        yield Row("harmonic", key, str(self.harmonic.value()))
        yield Row("numbers", key, str(list(self.numbers.get())))
        yield Row("rests", key, str(sorted(self.rests.items())))
        yield Row("largest", key, str(self.largest.get()))
        yield Row("mean", key, str(self.mean.get()))
        yield Row("lasting", key, str(self.lasting.value()))
        if n > SECOND_HALF:
            yield Row("brief", key, str(self.brief.value()))
        self.lasting.update((self.lasting.value() or 0) + n)
        self.brief.update(n)

    def on_timer(self, timestamp, ctx):
        key = ctx.get_current_key()
        if ctx.time_domain() == TimeDomain.PROCESSING_TIME:
            yield Row("clock", key, str(min(self.numbers.get())))
        else:
            past = [n for n in self.numbers.get() if n * 1000 <= timestamp]
            yield Row("timer", key, f"{timestamp} {past}")


def main(directory, output, bounded="", stopped="stopped"):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    source = FileSource(
        f"{directory}/events",
        "csv",
        schema="k STRING, n BIGINT",
        bounded=bool(bounded),
        max_files_per_trigger=1,
    )
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Seconds())
    events = env.from_source(source).assign_timestamps_and_watermarks(strategy)
    keyed = events.key_by(lambda event: event[0], Types.STRING())
    remembered = keyed.process(Remember(bool(stopped)), RESULT)
    remembered.uid("remember").sink_to(FileSink.for_path(f"{output}/results").format("json").build())
    env.execute("keyed state")


if __name__ == "__main__":
    main(*sys.argv[1:])
