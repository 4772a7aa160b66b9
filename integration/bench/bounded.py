"""How long a bounded job takes as a stream and as a batch: windowed counts over files of JSON.

Twelve files of random records, ``{"k": …, "ts": …, "amount": …, "note": …}`` of about 125 bytes; per key and
minute a count and a sum, into Parquet, with ``python -m yarnflow -p 2``.  A result is right if its counts add
up to the number of records.  The ratio is BATCH ÷ STREAMING, below 1 is faster.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow.parquet as pq

ROOT: Final = Path(__file__).resolve().parents[2]
MODES: Final = ("STREAMING", "BATCH")
FILES: Final = 12
KEYS: Final = 1000
#: of the records' times
MINUTES: Final = 60
FIRST_MS: Final = 1_700_000_000_000 // 60_000 * 60_000

PROGRAM: Final = """
import sys

from yarnflow.api import FileSink, FileSource, StreamExecutionEnvironment
from yarnflow.api.common import Duration, Time, WatermarkStrategy
from yarnflow.api.datastream.window import TumblingEventTimeWindows

env = StreamExecutionEnvironment.get_execution_environment()
schema = "k BIGINT, ts BIGINT, amount DOUBLE, note STRING"
records = env.from_source(FileSource(sys.argv[1], "json", schema=schema))
strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(1))
timed = records.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner("timestamp_millis(ts)"))
windows = timed.key_by("k").window(TumblingEventTimeWindows.of(Time.minutes(1)))
windows.aggregate("count(*) AS n", "sum(amount) AS total").sink_to(FileSink(sys.argv[2], "parquet"))
env.execute("windowed count")
"""


def write_input(directory: Path, records: int) -> None:
    """Files of records whose times rise, a minute out of order."""
    directory.mkdir()
    random = np.random.default_rng(7)
    each = records // FILES
    for number in range(FILES):
        keys = random.integers(0, KEYS, each)
        rising = np.linspace(0, MINUTES * 60_000, each).astype(int)
        times = FIRST_MS + rising + random.integers(0, 60_000, each)
        amounts = random.random(each) * 100
        with (directory / f"{number:02}.json").open("w") as out:
            for key, time_ms, amount in zip(keys.tolist(), times.tolist(), amounts.tolist(), strict=True):
                note = f"a record of a measurement, as wide as others are {key:06}"
                out.write(f'{{"k": {key}, "ts": {time_ms}, "amount": {amount!r}, "note": "{note}"}}\n')


def run(program: Path, source: Path, output: Path, mode: str) -> float:
    """Seconds of the whole command."""
    command = [sys.executable, "-m", "yarnflow", "-p", "2", f"-Dexecution.runtime-mode={mode}"]
    log = output.with_suffix(".log")
    start = time.monotonic()
    with log.open("wb") as file:
        status = subprocess.run(
            [*command, str(program), str(source), str(output)], stdout=file, stderr=file, cwd=program.parent
        ).returncode
    seconds = time.monotonic() - start
    if status:
        raise SystemExit(f"{mode} ended with status {status}:\n{log.read_text()[-3000:]}")
    return seconds


def counted(output: Path) -> int:
    """Records in all windows."""
    return int(sum(pq.read_table(output, columns=["n"])["n"].to_pylist()))


def main() -> None:
    """Run the rounds and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--input", type=Path, help="directory to keep the files in, or to take them from")
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=MODES)
    arguments = parser.parse_args()
    seconds: dict[str, list[float]] = {mode: [] for mode in arguments.modes}
    with tempfile.TemporaryDirectory() as scratch:
        source = arguments.input.resolve() if arguments.input else Path(scratch) / "in"
        if not source.exists():
            write_input(source, arguments.records)
        program = Path(scratch) / "windowed_count.py"
        program.write_text(PROGRAM)
        for number in range(arguments.rounds):
            for mode in arguments.modes[:: -1 if number % 2 else 1]:
                print(f"{mode}, {number + 1}", file=sys.stderr, flush=True)
                output = Path(scratch) / f"{mode}-{number}"
                seconds[mode].append(round(run(program, source, output, mode), 1))
                assert counted(output) == arguments.records // FILES * FILES, "records are missing"
    result: dict[str, Any] = {"bench": "bounded", "records": arguments.records, "seconds": seconds}
    medians = {mode: statistics.median(found) for mode, found in seconds.items()}
    if set(medians) == set(MODES):
        result["ratio"] = round(medians["BATCH"] / medians["STREAMING"], 2)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
