"""Event-time windows, tumbling or session, with a function of all elements of a window."""

import sys

from pyflink.common import Configuration, Duration, Time, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat
from pyflink.datastream.window import EventTimeSessionWindows, TumblingEventTimeWindows

EVENT = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])
RESULT = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG(), Types.LONG()])
WINDOWS = {
    "tumbling": TumblingEventTimeWindows.of(Time.seconds(10)),
    "session": EventTimeSessionWindows.with_gap(Time.seconds(2)),
}


def parse(line):
    key, time_ms, amount = line.split(",")
    return int(key), int(time_ms), int(amount)


class EventTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[1]


class Total(ProcessWindowFunction):
    def process(self, key, context, elements):
        amounts = [event[2] for event in elements]
        yield key, context.window().start, len(amounts), sum(amounts)


def main(directory, mode, windows):
    configuration = Configuration()
    configuration.set_string("python.execution-mode", mode)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), directory).build()
    in_order = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
        .map(parse, EVENT)
        .assign_timestamps_and_watermarks(in_order.with_timestamp_assigner(EventTime()))
        .key_by(lambda event: event[0], Types.LONG())
        .window(WINDOWS[windows])
        .process(Total(), RESULT)
        .filter(lambda result: result[0] == 0)
        .print()
    )
    env.execute("windows")


if __name__ == "__main__":
    main(*sys.argv[1:])
