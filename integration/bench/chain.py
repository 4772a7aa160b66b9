"""Five Python functions in a chain: one Arrow round trip against five ``mapInArrow``.

Both run the same functions with yarnflow's own row conversion on one Spark session, so that the
only difference is the number of round trips.  The ratio is fused ÷ separate, below 1 is faster.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from yarnflow.graph.closures import make_closure
from yarnflow.graph.operators import PythonKind
from yarnflow.graph.schema import Field, Schema
from yarnflow.spark.translate.python_chain import Chain, ChainSpec, Stage
from yarnflow.spark.translate.schemas import to_arrow

SCHEMA = Schema((Field("number", "bigint"), Field("word", "string")))


def _stages() -> list[Stage]:
    return [
        Stage(PythonKind.MAP, make_closure(lambda row, n=n: (row.number + n, row.word), "bench"), SCHEMA)
        for n in range(5)
    ]


def _round_trip(frame: DataFrame, stages: list[Stage]) -> DataFrame:
    spec = ChainSpec(SCHEMA, tuple(stages), to_arrow(frame.schema))
    return frame.mapInArrow(Chain(spec), frame.schema)


def seconds(frame: DataFrame) -> float:
    """Wall time of computing every row."""
    start = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start


def main() -> None:
    """Run the rounds and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", False)
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    source = spark.range(arguments.rows).selectExpr("id AS number", "concat('w', id % 100) AS word")
    stages = _stages()

    def fused() -> DataFrame:
        return _round_trip(source, stages)

    def separate() -> DataFrame:
        frame = source
        for stage in stages:
            frame = _round_trip(frame, [stage])
        return frame

    times: dict[str, list[float]] = {"fused": [], "separate": []}
    seconds(fused()), seconds(separate())  # warm
    for _ in range(arguments.rounds):
        times["fused"].append(seconds(fused()))
        times["separate"].append(seconds(separate()))
    median: dict[str, Any] = {name: round(statistics.median(values), 3) for name, values in times.items()}
    print(
        json.dumps(
            {
                "bench": "chain",
                "rows": arguments.rows,
                "functions": len(stages),
                "median_s": median,
                "ratio": round(median["fused"] / median["separate"], 3),
                "runs": times,
            }
        )
    )
    spark.stop()


if __name__ == "__main__":
    main()
