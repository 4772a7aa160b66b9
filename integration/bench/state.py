"""Records per second of a function with keyed state, in both backends.

A KeyedProcessFunction counts its key's records in a ValueState, over files of random keys, one file per
micro-batch, on two task threads of one Spark process: every key comes up again in (nearly) every batch where
there are few, and in each eighth or so where there are many.  A micro-batch's time is Spark's own, from
reading the file to the commit of its state; the first ones, which start workers, are left out.  The ratio is
rocksdb ÷ hashmap, below 1 is slower.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from integration.spark.translate_support import make_session
from yarnflow.api import FileSink, FileSource, StreamExecutionEnvironment
from yarnflow.api.common import Types
from yarnflow.api.datastream.functions import KeyedProcessFunction, RuntimeContext
from yarnflow.api.datastream.state import ValueStateDescriptor
from yarnflow.api.executor import use_executor
from yarnflow.config.configuration import Configuration
from yarnflow.spark.run.graph_program import GraphProgram
from yarnflow.testing.kept_graph import KeptGraph

BACKENDS: Final = ("hashmap", "rocksdb")
KEYS: Final = (1_000, 100_000, 2_000_000)
WARM_UP: Final = 2
TOTAL: Final = Types.ROW_NAMED(["k", "n"], [Types.LONG(), Types.LONG()])


class Counts(KeyedProcessFunction):
    """Counts, and tells every thousandth."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Iterator[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        if count % 1000 == 0:
            yield value[0], count


def write_input(directory: Path, keys: int, records: int, batches: int) -> None:
    """One file of random keys per micro-batch."""
    directory.mkdir()
    random = np.random.default_rng(7)
    for number in range(batches):
        table = pa.table({"k": random.integers(0, keys, records), "n": np.arange(records)})
        pq.write_table(table, directory / f"{number:03}.parquet", row_group_size=max(1, records // 2))


def batch_seconds(spark: SparkSession, source: Path, scratch: Path, backend: str) -> list[float]:
    """Seconds of each micro-batch of one run to its end."""
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(2)
    schema = "k BIGINT, n BIGINT"
    files = FileSource(source, "parquet", schema=schema, bounded=True, max_files_per_trigger=1)
    counted = env.from_source(files).key_by(lambda row: row[0]).process(Counts(), output_type=TOTAL)
    counted.sink_to(FileSink(str(scratch / "out"), "parquet"))
    kept = KeptGraph()
    with use_executor(kept):
        env.execute_async("state")
    configuration = Configuration.from_dict({"state.backend.type": backend}, "bench")
    program = GraphProgram(spark, kept.graphs[-1], configuration, str(scratch / "checkpoint"))
    program.prepare()
    program.start()
    (query,) = spark.streams.active
    program.await_end()
    progress = [one for one in query.recentProgress if one["numInputRows"] > 1]
    return [one["durationMs"]["triggerExecution"] / 1000 for one in progress][WARM_UP:]


def main() -> None:
    """Run the rounds and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=250_000, help="per micro-batch")
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    seconds: dict[tuple[int, str], list[float]] = {}
    spark = make_session()
    with tempfile.TemporaryDirectory() as scratch:
        for keys in KEYS:
            source = Path(scratch) / f"keys-{keys}"
            write_input(source, keys, arguments.records, arguments.batches + WARM_UP)
            for number in range(arguments.rounds):
                for backend in BACKENDS[:: -1 if number % 2 else 1]:
                    print(f"{keys} keys, {backend}, {number + 1}", file=sys.stderr, flush=True)
                    place = Path(scratch) / f"{keys}-{backend}-{number}"
                    place.mkdir()
                    found = batch_seconds(spark, source, place, backend)
                    seconds.setdefault((keys, backend), []).extend(found)
    spark.stop()
    result: dict[str, Any] = {"bench": "state", "rounds": arguments.rounds, "records": arguments.records}
    for keys in KEYS:
        medians = {backend: statistics.median(seconds[keys, backend]) for backend in BACKENDS}
        result[f"{keys}_keys"] = {
            **{f"{backend}_per_s": round(arguments.records / medians[backend]) for backend in BACKENDS},
            "ratio": round(medians["hashmap"] / medians["rocksdb"], 2),
        }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
