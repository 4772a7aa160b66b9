"""A stateless chain of Python functions: map, filter, map."""

import sys

from pyflink.common import Configuration, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat

EVENT = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])


def parse(line):
    key, time_ms, amount = line.split(",")
    return int(key), int(time_ms), int(amount)


def main(directory, mode):
    configuration = Configuration()
    configuration.set_string("python.execution-mode", mode)
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), directory).build()
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
        .map(parse, EVENT)
        .filter(lambda event: event[0] % 10 != 9)
        .map(lambda event: (event[0], event[1] // 1000, event[2] * 3), EVENT)
        .filter(lambda event: event[0] == 0)
        .print()
    )
    env.execute("chain")


if __name__ == "__main__":
    main(*sys.argv[1:])
