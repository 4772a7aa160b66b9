"""A text file next to the program, line by line; blank lines are elements, the last line needs no end."""

# compare: sorted
# run: drill

import os

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "words.txt")
    source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), path).build()
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "words")
    lines.map(lambda line: f"[{line}] {len(line)}", Types.STRING()).print()
    env.execute()


if __name__ == "__main__":
    main()
