"""Windows of elements, and functions of two streams: keyed, and with broadcast state; a PyFlink program."""

import sys

from pyflink.common import Row, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from pyflink.datastream.window import CountWindow, EventTimeSessionWindows, TumblingEventTimeWindows

from yarnflow.api import FileSink, FileSource

RESULT = Types.ROW_NAMED(["what", "k", "value"], [Types.STRING(), Types.STRING(), Types.STRING()])
RULES = MapStateDescriptor("rules", Types.STRING(), Types.LONG())
#: when what was kept is given: in the second half of the input
GIVEN_MS = 60_000


class Seconds(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1] * 1000


class Sums(ProcessWindowFunction):
    def __init__(self, what):
        self.what = what

    def process(self, key, context, elements):
        before = context.global_state().get_state(ValueStateDescriptor("windows", Types.LONG()))
        number = (before.value() or 0) + 1
        before.update(number)
        window = context.window()
        begin = "" if isinstance(window, CountWindow) else f"{window.start} "
        yield Row(self.what, key, f"{number}: {begin}{sum(element[1] for element in elements)}")


class Named(KeyedCoProcessFunction):
    """The numbers of a key with the key's name, whichever comes first."""

    def open(self, runtime_context):
        self.name = runtime_context.get_state(ValueStateDescriptor("name", Types.STRING()))
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("waiting", Types.LONG()))

    def process_element1(self, value, ctx):
        self.waiting.add(value[1])
        ctx.timer_service().register_event_time_timer(GIVEN_MS)
        return []

    def process_element2(self, value, ctx):
        self.name.update(value[2])
        return []

    def on_timer(self, timestamp, ctx):
        numbers = sorted(n for n in self.waiting.get() if n * 1000 <= GIVEN_MS)
        if numbers:
            yield Row("named", ctx.get_current_key(), f"{self.name.value()} {numbers}")


class Ruled(KeyedBroadcastProcessFunction):
    """The numbers of a key by all the rules of their time."""

    def open(self, runtime_context):
        self.waiting = runtime_context.get_list_state(ListStateDescriptor("ruled", Types.LONG()))

    def process_element(self, value, ctx):
        self.waiting.add(value[1])
        ctx.timer_service().register_event_time_timer(GIVEN_MS)
        return []

    def process_broadcast_element(self, value, ctx):
        ctx.get_broadcast_state(RULES).put(value[0], value[1])
        return []

    def on_timer(self, timestamp, ctx):
        numbers = sorted(n for n in self.waiting.get() if n * 1000 <= GIVEN_MS)
        for name, factor in sorted(ctx.get_broadcast_state(RULES).items()):
            if numbers and factor * 1000 <= GIVEN_MS:
                yield Row("ruled", ctx.get_current_key(), f"{name} {[n * factor for n in numbers]}")


def main(directory, output, bounded="", _stopped=""):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Seconds())

    def stream(name, schema):
        source = FileSource(
            f"{directory}/{name}", "csv", schema=schema, bounded=bool(bounded), max_files_per_trigger=1
        )
        return env.from_source(source).uid(name).assign_timestamps_and_watermarks(strategy)

    def write(results, name):
        results.sink_to(FileSink.for_path(f"{output}/{name}").format("json").build()).uid(f"{name} files")

    events = stream("events", "k STRING, n BIGINT").key_by(lambda event: event[0], Types.STRING())
    names = stream("names", "k STRING, n BIGINT, name STRING")
    rules = stream("rules", "name STRING, n BIGINT")
    tumbling = events.window(TumblingEventTimeWindows.of(Time.seconds(5)))
    write(tumbling.process(Sums("tumbling"), RESULT).uid("tumbling"), "tumbling")
    sessions = events.window(EventTimeSessionWindows.with_gap(Time.seconds(4)))
    write(sessions.process(Sums("session"), RESULT).uid("sessions"), "sessions")
    write(events.count_window(2).process(Sums("count"), RESULT).uid("counts"), "counts")
    named = events.connect(names.key_by(lambda name: name[0], Types.STRING()))
    write(named.process(Named(), RESULT).uid("named"), "named")
    write(events.connect(rules.broadcast(RULES)).process(Ruled(), RESULT).uid("ruled"), "ruled")
    env.execute("windows and streams")


if __name__ == "__main__":
    main(*sys.argv[1:])
