"""Counts per key in a ValueState; each element gives the count so far."""

import sys

from pyflink.common import Configuration, Types, WatermarkStrategy
from pyflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat
from pyflink.datastream.state import ValueStateDescriptor

EVENT = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])
COUNT = Types.TUPLE([Types.LONG(), Types.LONG()])


def parse(line):
    key, time_ms, amount = line.split(",")
    return int(key), int(time_ms), int(amount)


class Counter(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value[0], count


def main(directory, mode):
    configuration = Configuration()
    configuration.set_string("python.execution-mode", mode)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), directory).build()
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
        .map(parse, EVENT)
        .key_by(lambda event: event[0], Types.LONG())
        .process(Counter(), COUNT)
        .filter(lambda result: result[0] == 0)
        .print()
    )
    env.execute("counter")


if __name__ == "__main__":
    main(*sys.argv[1:])
