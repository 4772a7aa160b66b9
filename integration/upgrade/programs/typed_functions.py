"""Functions whose type hints say the columns that they take and give."""

import sys
from collections.abc import Iterable
from typing import NamedTuple

from yarnflow.api import (
    FileSink,
    FileSource,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)


class Part(NamedTuple):
    """What a function makes of an event."""

    k: str
    n: int
    even: bool


def parts(event) -> Iterable[Part]:
    """Each event twice."""
    yield Part(event.k, event.n, event.n % 2 == 0)
    yield Part(event.k.upper(), event.n, event.n % 2 == 0)


def in_one(k, context, rows):
    """The numbers of a window in order."""
    return [(k, str(sorted(row.n for row in rows)))]


def main(directory, output, bounded="", _stopped=""):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    source = FileSource(
        f"{directory}/events",
        "csv",
        schema="k STRING, n BIGINT",
        bounded=bool(bounded),
        max_files_per_trigger=1,
    )
    timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("timestamp_seconds(n)")
    typed = env.from_source(source).uid("events").flat_map(parts)

    def write(results, name):
        results.sink_to(FileSink.for_path(f"{output}/{name}").format("json").build()).uid(f"{name} files")

    write(typed.key_by("k", "even").count().uid("counts"), "counts")
    windows = typed.assign_timestamps_and_watermarks(timed).key_by("k")
    windows = windows.window(TumblingEventTimeWindows.of("5 seconds"))
    write(windows.process(in_one, "k STRING, numbers STRING").uid("windows"), "windows")
    env.execute("typed functions")


if __name__ == "__main__":
    main(*sys.argv[1:])
