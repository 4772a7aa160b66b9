"""Bids as PyFlink's DataStream has them: lines, and functions on whole objects.  For PyFlink and yarnflow.

python rows.py rows OUT file DIRECTORY "" process|thread
"""

import json
import sys

from pyflink.common import Configuration, Encoder, Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, FileSource, StreamFormat


def euros(line):
    bid = json.loads(line)
    return bid["auction"], bid["bidder"], bid["price"] * 92 // 100


def main(pipeline, out, kind, place, topic, mode):
    config = Configuration()
    config.set_string("python.execution-mode", mode)
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(2)
    files = FileSource.for_record_stream_format(StreamFormat.text_line_format(), place).build()
    lines = env.from_source(files, WatermarkStrategy.no_watermarks(), "bids")
    dear = lines.map(euros).filter(lambda bid: bid[2] > 828)
    texts = dear.map(lambda bid: f"{bid[0]},{bid[1]},{bid[2]}", Types.STRING())
    texts.sink_to(FileSink.for_row_format(out, Encoder.simple_string_encoder()).build())
    env.execute("bids")


if __name__ == "__main__":
    main(*sys.argv[1:])
