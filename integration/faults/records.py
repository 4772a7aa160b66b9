"""A job over numbered records, and a checker that counts every one of them.

The source numbers its records; the same number comes again after any restart.  One sink gets
every record, another one sums per key and window, so a record lost or doubled anywhere shows in
one of the two, by its number in the first.

The job runs until it is drained, however long the faults take on this machine.  How many records
each of its two queries has taken until then is known from the savepoint; that both still read after
the faults is for the tests to see, by the commits of both.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

KEYS: Final = 7
#: of a command: the cluster may still be busy with a fault
PATIENT: Final = "-Dclient.timeout=300 s"
#: of the job: one for each sink
QUERIES: Final = 2

_PROGRAM: Final = """
from yarnflow.api import *

env = StreamExecutionEnvironment.get_execution_environment()
rows = env.from_source(RateSource(rows_per_second={rate}, count={count}))
rows.sink_to(FileSink.for_path({output!r} + "/rows").format("parquet").build())
timed = rows.assign_timestamps_and_watermarks(
    WatermarkStrategy.for_bounded_out_of_orderness("1 second").with_timestamp_assigner("timestamp")
)
(
    timed.key_by("value % {keys} AS part")
    .window(TumblingEventTimeWindows.of("5 seconds"))
    .aggregate("sum(value) AS total", "count(*) AS records")
    .sink_to(FileSink.for_path({output!r} + "/sums").format("parquet").build())
)
env.execute("numbered")
"""


@dataclass(frozen=True)
class Taken:
    """Records that the query of each sink has read."""

    rows: int
    sums: int

    def verdict(self, values: Iterable[int], sums: Iterable[tuple[int, int, int]]) -> str:
        """What is wrong with the results; empty = every record was counted once.

        Parameters
        ----------
        values : iterable of int
            The numbers found in the first sink.
        sums : iterable of (part, total, records)
            The rows of the second.
        """
        seen = Counter(values)
        problems = [] if self.rows and self.sums else ["nothing was read"]
        if doubled := sorted(value for value, times in seen.items() if times > 1):
            problems.append(f"{len(doubled)} records more than once: {_ranges(doubled)}")
        if missing := sorted(set(range(self.rows)) - seen.keys()):
            problems.append(f"{len(missing)} records missing: {_ranges(missing)}")
        if strange := sorted(seen.keys() - set(range(self.rows))):
            problems.append(f"{len(strange)} records nobody made: {_ranges(strange)}")
        totals: Counter[int] = Counter()
        records: Counter[int] = Counter()
        for part, total, number in sums:
            totals[part] += total
            records[part] += number
        for part in range(KEYS):
            expected = range(part, self.sums, KEYS)
            if (totals[part], records[part]) != (sum(expected), len(expected)):
                problems.append(
                    f"key {part}: sum {totals[part]} of {records[part]} records, "
                    f"not {sum(expected)} of {len(expected)}"
                )
        return "; ".join(problems)


@dataclass(frozen=True)
class Numbered:
    """The job.

    Parameters
    ----------
    output : str
        Directory (a URI, or a path of this machine) below which both sinks write.
    rate : int
        Records per second.
    count : int, optional
        The job ends by itself after so many.
    """

    output: str
    rate: int = 50
    count: int | None = None

    def write_program(self, path: Path) -> Path:
        """The program, for ``yarnflow submit``."""
        path.write_text(_PROGRAM.format(rate=self.rate, count=self.count, output=self.output, keys=KEYS))
        return path

    def taken(self, manifest: Mapping[str, Any]) -> Taken:
        """What was read before the savepoint, of ``yarnflow savepoint inspect --json``."""
        stateful = {query["name"]: bool(query["operators"]) for query in manifest["program"]["queries"]}
        # the source's offset is in whole seconds since its first batch
        counts = {
            stateful[position["query"]]: int(source["end_offset"]) * self.rate
            for position in manifest["positions"]
            for source in position["sources"]
        }
        return Taken(rows=counts[False], sums=counts[True])


def _ranges(numbers: Sequence[int], most: int = 12) -> str:
    """``1–4, 9`` of sorted numbers."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    texts = [str(a) if a == b else f"{a}–{b}" for a, b in found[:most]]
    return ", ".join(texts) + (", …" if len(found) > most else "")


#: directory below the output → names and contents of its visible files
Files = Callable[[str], Iterable[bytes]]


def read_results(files: Files) -> tuple[list[int], list[tuple[int, int, int]]]:
    """Numbers of the first sink and rows of the second."""
    values: list[int] = []
    for content in files("rows"):
        values += pq.read_table(io.BytesIO(content), columns=["value"])["value"].to_pylist()
    sums: list[tuple[int, int, int]] = []
    for content in files("sums"):
        table = pq.read_table(io.BytesIO(content), columns=["part", "total", "records"])
        sums += zip(*(table[name].to_pylist() for name in ("part", "total", "records")), strict=True)
    return values, sums
