"""How long a small micro-batch takes whose checkpoint, state and output are on HDFS or this machine.

One script with a checkpoint location of its own, a windowless count per key over many small files,
one file per batch, as fast as it goes: under ``yarnflow submit`` as it is, and in another way.  On HDFS
that is with the delay that Hadoop's clients have by default before they ask again whether a file is
complete (``hadoop_delay``), with ``--local`` by the manager of checkpoint files that Spark has by
default (``file_context``).  A batch's time is the gap between two of Spark's own commit files; ``cpu_s``
is what one run takes of all processes, starts included.  Rounds alternate, medians are compared; ratios
are as-is ÷ the other, below 1 is less.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from integration.commits import Commit, commits_below, gaps_s, local_commits_below
from integration.conftest import Commands
from integration.hadoop import HadoopCluster
from yarnflow.spark.checkpoints.file_manager import FILE_MANAGER, LOCAL_FILE_MANAGER

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

AS_IS: Final = "as_is"
_DELAY: Final = "spark.hadoop.dfs.client.block.write.locateFollowingBlock.initial.delay.ms"
_FILE_CONTEXT: Final = LOCAL_FILE_MANAGER.replace("FileSystemBased", "FileContextBased")


@dataclass(frozen=True)
class Place:
    """Where the job's files are."""

    #: a URI
    root: str
    #: write a file
    put: Callable[[str, bytes], None]
    #: those below a directory of it
    commits: Callable[[str], list[Commit]]
    #: name and option of the way that it is compared with
    other: tuple[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def on_hdfs(scratch: Path) -> Iterator[Place]:
    """A cluster of the bench's own."""
    cluster = HadoopCluster.start(scratch / "hadoop")
    try:
        yield Place(
            cluster.run("hdfs", "getconf", "-confKey", "fs.defaultFS").strip(),
            lambda path, content: cluster.hdfs.put(path, content),
            lambda path: commits_below(cluster.hdfs.client, path),
            ("hadoop_delay", f"-D{_DELAY}=400"),
            cluster.env(),
        )
    finally:
        cluster.stop()


@contextmanager
def on_this_machine(scratch: Path) -> Iterator[Place]:
    """A directory."""

    def put(path: str, content: bytes) -> None:
        file = scratch / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    yield Place(
        scratch.as_uri(),
        put,
        lambda path: local_commits_below(scratch / path.lstrip("/")),
        ("file_context", f"-D{FILE_MANAGER}={_FILE_CONTEXT}"),
    )


def run(place: Place, directory: Path, *options: str) -> tuple[list[float], float]:
    """One job to its end: seconds between its commits, without those of the warm-up, and its CPU time."""
    name = uuid.uuid4().hex[:8]
    where = f"/bench/{name}"
    script = directory / f"batches-{name}.py"
    script.write_text(
        SCRIPT.format(
            source=f"{place.root}/bench/records",
            output=f"{place.root}{where}/output",
            checkpoint=f"{place.root}{where}/query-0",
        )
    )
    commands, before_s = Commands(directory, uuid.uuid4().hex), _cpu_s()
    started = commands.start(
        "submit",
        "-Dparallelism.default=1",
        *options,
        script,
        environment=place.environment,
    )
    if started.wait(600) != 0:
        raise SystemExit(started.stderr)
    kept = sorted(place.commits(where), key=lambda commit: commit.batch_id)[WARM_UP:]
    return gaps_s(kept, 0), _cpu_s() - before_s


def _cpu_s() -> float:
    """Of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Run the rounds and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--local", action="store_true", help="on this machine instead of HDFS")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        with (on_this_machine if arguments.local else on_hdfs)(Path(scratch)) as place:
            other, option = place.other
            variants: dict[str, tuple[str, ...]] = {AS_IS: (), other: (option,)}
            gaps: dict[str, list[float]] = {variant: [] for variant in variants}
            cpu: dict[str, list[float]] = {variant: [] for variant in variants}
            for number in range(BATCHES):
                rows = "".join(f"{key},{number}\n" for key in range(100))
                place.put(f"/bench/records/{number:03}.csv", rows.encode())
            for number in range(arguments.rounds):
                order = list(variants.items())[:: -1 if number % 2 else 1]
                for variant, options in order:
                    print(f"{variant} {number + 1} of {arguments.rounds}", file=sys.stderr, flush=True)
                    found, used_s = run(place, Path(scratch), *options)
                    gaps[variant] += found
                    cpu[variant].append(used_s)
    batch_s, cpu_s = (
        {variant: round(statistics.median(values), 3) for variant, values in of.items()} for of in (gaps, cpu)
    )
    result: dict[str, Any] = {"bench": "batches", "rounds": arguments.rounds, "batch_s": batch_s}
    result["batches"] = {variant: len(found) for variant, found in gaps.items()}
    result["ratio"] = round(batch_s[AS_IS] / batch_s[other], 2)
    result |= {"cpu_s": cpu_s, "cpu_ratio": round(cpu_s[AS_IS] / cpu_s[other], 2)}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
