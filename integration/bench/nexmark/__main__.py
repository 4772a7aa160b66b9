"""``scripts/bench nexmark``."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import psutil

from integration.bench.nexmark.generator import PARTS, Events, make_events
from integration.bench.nexmark.queries import PROGRAMS, QUERIES, Query
from integration.bench.nexmark.reference import Comparison, Reference
from integration.bench.pyflink.engines import yarnflow_command
from integration.bench.pyflink.measured_run import MeasuredRun, RunFailed, measure, steady_rate

_EVENTS: Final = 3_000_000
#: of event time, as Nexmark's generator makes them
_EVENTS_PER_S: Final = 10_000
#: of a micro-batch
_EVENTS_PER_BATCH: Final = 250_000
#: the large input is so many times the small one
_LARGER: Final = 4


def main() -> None:
    """Run the queries and print one JSON object."""
    parser = argparse.ArgumentParser(prog="scripts/bench nexmark")
    names = [query.name for query in QUERIES]
    parser.add_argument(
        "--queries", nargs="+", choices=names, default=names, metavar="QUERY", help=", ".join(names)
    )
    parser.add_argument("--events", type=int, default=_EVENTS, help="of the large input")
    parser.add_argument("--batch", type=int, default=_EVENTS_PER_BATCH, help="events of a micro-batch")
    parser.add_argument(
        "--keep", metavar="DIRECTORY", help="events and logs stay there; events are used again"
    )
    arguments = parser.parse_args()
    queries = [query for query in QUERIES if query.name in arguments.queries]
    with tempfile.TemporaryDirectory(prefix="yarnflow-bench-") as name:
        scratch = Path(arguments.keep or name).resolve()
        inputs = [
            make_events(
                scratch / "inputs", count, _EVENTS_PER_S, PARTS * max(1, round(count / arguments.batch))
            )
            for count in (arguments.events // _LARGER, arguments.events)
        ]
        found = {query.name: _figures(query, inputs, scratch) for query in queries}
    result: dict[str, Any] = {"bench": "nexmark", "processors": os.cpu_count()}
    result["load"] = round(psutil.getloadavg()[0], 1)
    print(json.dumps(result | {"queries": found}))


def _figures(query: Query, inputs: Sequence[Events], scratch: Path) -> dict[str, Any]:
    """Figures of one query, or why there are none."""
    found = []
    try:
        for events in inputs:
            found.append(_measured(query, events, scratch / f"{query.name}-{events.count}"))
    except (RunFailed, duckdb.Error) as failed:
        print(failed, file=sys.stderr, flush=True)
        return {"title": query.title, "error": str(failed).splitlines()[0], "records_per_s": None}
    runs, rows = zip(*found, strict=True)
    small, large = (events.count for events in inputs)
    return {
        "title": query.title,
        # of a wrong result no rate is told
        "records_per_s": steady_rate((small, large), runs) if all(r.is_equal for r in rows) else None,
        "records": [small, large],
        "seconds": [round(run.total_s, 1) for run in runs],
        "peak_mib": runs[1].peak_mib,
        "result_rows": [r.written for r in rows],
        "missing_rows": [r.missing for r in rows],
        "additional_rows": [r.additional for r in rows],
    }


def _measured(query: Query, events: Events, directory: Path) -> tuple[MeasuredRun, Comparison]:
    """Run a query's program, then compare what it wrote."""
    print(f"{query.name} {query.title} {events.count:,}", file=sys.stderr, flush=True)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    out = directory / "out"
    program = PROGRAMS / f"{query.name}.py"
    run = measure(yarnflow_command([str(program), str(out), str(events.directory)], directory))
    # the database is there only while no program is measured
    with contextlib.closing(Reference(events)) as reference:
        rows = reference.compare(query, out)
    for example in rows.examples:
        print(f"  {example}", file=sys.stderr)
    wrong = f"{rows.missing} missing, {rows.additional} additional"
    print(f"  {run.total_s:.1f} s, {run.peak_mib} MiB, {wrong}", file=sys.stderr, flush=True)
    shutil.rmtree(out, ignore_errors=True)
    return run, rows


if __name__ == "__main__":
    main()
