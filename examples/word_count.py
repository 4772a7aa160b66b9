"""Counts words in text files.

    yarnflow submit examples/word_count.py
    yarnflow submit examples/word_count.py --input books/ --output counts/
    yarnflow submit -t yarn-per-job examples/word_count.py --input hdfs:///books --output hdfs:///counts

Splitting is Python, counting is native.
"""

import argparse
import re
from collections.abc import Iterable
from pathlib import Path

from yarnflow.api import FileSink, StreamExecutionEnvironment


def words(line: str) -> Iterable[str]:
    """The words of a line, in lower case."""
    yield from re.findall(r"\w+", line.lower())


parser = argparse.ArgumentParser(description="Counts words in text files.")
parser.add_argument(
    "--input", default=str(Path(__file__).with_name("words.txt")), help="text file or directory"
)
parser.add_argument("--output", help="directory for CSV files; default: print the counts")
arguments = parser.parse_args()

env = StreamExecutionEnvironment.get_execution_environment()
counts = env.read_text_file(arguments.input).flat_map(words).name("Words").key_by("value AS word").count()
if arguments.output:
    counts.sink_to(FileSink.for_path(arguments.output).format("csv").option("header", True).build())
else:
    counts.print()
env.execute("word_count")
