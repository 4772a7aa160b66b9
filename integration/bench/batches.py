"""How long a small micro-batch takes whose checkpoint, state and output are on HDFS.

One script with a checkpoint location of its own, a windowless count per key over many small files,
one file per batch, as fast as it goes: under ``yarnflow submit`` as it is, and with the delay that
Hadoop's clients have by default before they ask again whether a file is complete (``hadoop_delay``).
A batch's time is the gap between two of Spark's own commit files.  Rounds alternate, medians are
compared; the ratio is as-is ÷ ``hadoop_delay``, below 1 is faster.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any, Final

from integration.commits import commits_below, gaps_s
from integration.conftest import Commands
from integration.hadoop import HadoopCluster

#: the first ones load classes and start Python workers
WARM_UP: Final = 10
BATCHES: Final = 60

SCRIPT = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
records = (spark.readStream.schema("key INT, value INT").option("maxFilesPerTrigger", 1).csv({source!r}))
query = (records.groupBy("key").count().writeStream.outputMode("update")
         .option("checkpointLocation", {checkpoint!r}).trigger(availableNow=True)
         .foreachBatch(lambda frame, batch: frame.write.parquet({output!r} + "/" + str(batch))).start())
query.awaitTermination()
"""

_DELAY: Final = "spark.hadoop.dfs.client.block.write.locateFollowingBlock.initial.delay.ms"
VARIANTS: Final[dict[str, tuple[str, ...]]] = {"as_is": (), "hadoop_delay": (f"-D{_DELAY}=400",)}


def run(cluster: HadoopCluster, directory: Path, root: str, options: tuple[str, ...]) -> list[float]:
    """One job to its end; seconds between its commits, in order, without those of the warm-up."""
    name = uuid.uuid4().hex[:8]
    place = f"/bench/{name}"
    script = directory / f"batches-{name}.py"
    script.write_text(
        SCRIPT.format(
            source=f"{root}/bench/records",
            output=f"{root}{place}/output",
            checkpoint=f"{root}{place}/query-0",
        )
    )
    commands = Commands(directory, uuid.uuid4().hex)
    started = commands.start(
        "submit",
        "-Dparallelism.default=1",
        *options,
        script,
        environment=cluster.env(),
    )
    if started.wait(600) != 0:
        raise SystemExit(started.stderr)
    found = commits_below(cluster.hdfs.client, place)
    kept = sorted(found, key=lambda commit: commit.batch_id)[WARM_UP:]
    return gaps_s(kept, 0)


def main() -> None:
    """Run the rounds and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    gaps: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    with tempfile.TemporaryDirectory() as scratch:
        cluster = HadoopCluster.start(Path(scratch) / "hadoop")
        try:
            root = cluster.run("hdfs", "getconf", "-confKey", "fs.defaultFS").strip()
            for number in range(BATCHES):
                rows = "".join(f"{key},{number}\n" for key in range(100))
                cluster.hdfs.put(f"/bench/records/{number:03}.csv", rows.encode())
            for number in range(arguments.rounds):
                order = list(VARIANTS.items())[:: -1 if number % 2 else 1]
                for variant, options in order:
                    print(f"{variant} {number + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
                    gaps[variant] += run(cluster, Path(scratch), root, options)
        finally:
            cluster.stop()
    medians = {variant: round(statistics.median(found), 3) for variant, found in gaps.items()}
    result: dict[str, Any] = {"bench": "batches", "rounds": arguments.rounds, "batch_s": medians}
    result["batches"] = {variant: len(found) for variant, found in gaps.items()}
    result["ratio"] = round(medians["as_is"] / medians["hadoop_delay"], 2)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
