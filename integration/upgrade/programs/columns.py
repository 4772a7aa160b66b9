"""Streams of columns: expressions, running aggregates, windows of event time, no Python functions."""

import sys

from yarnflow.api import (
    EventTimeSessionWindows,
    FileSink,
    FileSource,
    StreamExecutionEnvironment,
    TumblingEventTimeWindows,
    WatermarkStrategy,
)


def main(directory, output, bounded="", _stopped=""):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("timestamp_seconds(n)")

    def stream(name, schema):
        source = FileSource(
            f"{directory}/{name}", "csv", schema=schema, bounded=bool(bounded), max_files_per_trigger=1
        )
        return env.from_source(source).uid(name)

    def write(results, name):
        results.sink_to(FileSink.for_path(f"{output}/{name}").format("json").build()).uid(f"{name} files")

    events = stream("events", "k STRING, n BIGINT")
    running = events.select("k", "n", "n * 2 AS twice").filter("n <> 6").key_by("k")
    write(running.aggregate("count(*) AS c", "sum(twice) AS total").uid("running"), "running")
    timed_events = events.assign_timestamps_and_watermarks(timed)
    keyed = timed_events.key_by("k")
    tumbling = keyed.window(TumblingEventTimeWindows.of("5 seconds"))
    counted = tumbling.aggregate("count(*) AS c", "sum(n) AS total", "avg(n) AS mean").uid("tumbling")
    write(counted.select("k", "unix_seconds(window_start) AS start", "c", "total", "mean"), "tumbling")
    sessions = keyed.window(EventTimeSessionWindows.with_gap("4 seconds")).count().uid("sessions")
    write(sessions.select("k", "unix_seconds(window_start) AS start", "count"), "sessions")
    write(timed_events.drop_duplicates("k", within="1 hour").uid("first"), "first")
    env.execute("columns")


if __name__ == "__main__":
    main(*sys.argv[1:])
