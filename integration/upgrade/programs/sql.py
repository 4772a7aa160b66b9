"""SQL over streams: windows, a join of two streams, and DISTINCT."""

import sys

from yarnflow.api import FileSink, FileSource, StreamExecutionEnvironment, WatermarkStrategy


def main(directory, output, bounded="", _stopped=""):
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("timestamp_seconds(n)")

    def stream(name, schema):
        source = FileSource(
            f"{directory}/{name}", "csv", schema=schema, bounded=bool(bounded), max_files_per_trigger=1
        )
        return env.from_source(source).uid(name).assign_timestamps_and_watermarks(timed)

    def write(results, name):
        results.sink_to(FileSink.for_path(f"{output}/{name}").format("json").build()).uid(f"{name} files")

    events, names = stream("events", "k STRING, n BIGINT"), stream("names", "k STRING, n BIGINT, name STRING")
    windows = env.sql(
        "SELECT k, unix_seconds(window.start) AS start, count(*) AS c, sum(n) AS total FROM events "
        "GROUP BY window(event_time, '5 seconds'), k",
        events=events,
    )
    write(windows.uid("windows"), "windows")
    joined = env.sql(
        "SELECT e.k, e.n, m.name FROM events e JOIN names m ON e.k = m.k "
        "AND e.event_time BETWEEN m.event_time AND m.event_time + INTERVAL 1 HOUR",
        events=events,
        names=names,
    )
    write(joined.uid("joined"), "joined")
    distinct = env.sql("SELECT DISTINCT k, date_trunc('hour', event_time) AS h FROM events", events=events)
    distinct.uid("distinct").foreach_batch(
        lambda frame, batch_id: frame.coalesce(1).write.mode("append").json(f"{output}/distinct/{batch_id}")
    )
    env.execute("sql")


if __name__ == "__main__":
    main(*sys.argv[1:])
