"""Departure delays by hour, airport and airline, of flights as they come in; runs until it is stopped."""

import argparse

from yarnflow import api

FLIGHT = """year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay DOUBLE,
    arr_time INT, sched_arr_time INT, arr_delay DOUBLE, carrier STRING, flight INT, tailnum STRING,
    origin STRING, dest STRING, air_time DOUBLE, distance INT, hour INT, minute INT, time_hour STRING"""
SCHEDULED = "make_timestamp(year, month, day, sched_dep_time div 100, sched_dep_time % 100, 0) AS scheduled"

parser = argparse.ArgumentParser(description="Departure delays, for ever.")
parser.add_argument("--input", required=True, help="directory that is watched for flights as CSV")
parser.add_argument("--output", required=True, help="directory for Parquet")
arguments = parser.parse_args()

env = api.StreamExecutionEnvironment.get_execution_environment()
files = api.FileSource.for_path(arguments.input).format("csv").schema(FLIGHT).monitor_continuously()
files.option("header", True).option("nullValue", "NA").max_files_per_trigger(50)
event_time = api.WatermarkStrategy.for_bounded_out_of_orderness("1 hour").with_timestamp_assigner("scheduled")
(
    env.from_source(files.build(), source_name="Flights")
    .select(SCHEDULED, "origin", "carrier", "dep_delay")
    .assign_timestamps_and_watermarks(event_time)
    .key_by("origin", "carrier")
    .window(api.TumblingEventTimeWindows.of("1 hour"))
    .aggregate(
        "count(*) AS flights",
        "count(dep_delay) AS departed",
        "avg(dep_delay) AS mean_dep_delay",
        "avg(CAST(dep_delay > 15 AS INT)) AS share_late",
    )
    .uid("delays")
    .sink_to(api.FileSink.for_path(arguments.output).format("parquet").build())
)
env.execute("live_delays")
