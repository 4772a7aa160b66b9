"""A directory of text files that the program writes; a word count over all of them."""

# compare: per-key

import os
import tempfile

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSource, StreamFormat


def main():
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    with tempfile.TemporaryDirectory() as directory:
        for name, text in (("a.txt", "one two\ntwo three\n"), ("b.txt", "three\nthree")):
            with open(os.path.join(directory, name), "w") as file:
                file.write(text)
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), directory).build()
        words = (
            env.from_source(source, WatermarkStrategy.no_watermarks(), "texts")
            .flat_map(lambda line: line.split(), Types.STRING())
            .map(lambda word: (word, 1), Types.TUPLE([Types.STRING(), Types.INT()]))
        )
        words.key_by(lambda pair: pair[0], Types.STRING()).sum(1).print()
        env.execute()


if __name__ == "__main__":
    main()
