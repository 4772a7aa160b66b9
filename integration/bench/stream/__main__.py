"""``scripts/bench stream``."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psutil

from integration.bench.pyflink.measured_run import RunFailed, measure, steady_rate
from integration.bench.stream.cases import CASES, ENGINES, YARNFLOW, Case
from integration.bench.stream.engines import command
from integration.bench.stream.inputs import Bids, make_files, make_topic
from integration.bench.stream.latency import ENGINES as LATENCY_ENGINES
from integration.bench.stream.latency import PIPELINES, latency
from integration.bench.stream.results import expected, written
from integration.kafka import KafkaBroker

_RECORDS: Final = 3_000_000
_RATES: Final = (100, 10_000)
_SECONDS: Final = 120.0
#: the large input is so many times the small one
_LARGER: Final = 4


def main() -> None:
    """Run the cases and print one JSON object."""
    parser = argparse.ArgumentParser(prog="scripts/bench stream")
    names = [case.name for case in CASES]
    parser.add_argument(
        "--cases", nargs="*", choices=names, default=names, metavar="CASE", help=", ".join(names)
    )
    parser.add_argument(
        "--engines", nargs="+", choices=ENGINES, default=ENGINES, metavar="ENGINE", help=", ".join(ENGINES)
    )
    parser.add_argument("--records", type=int, default=_RECORDS, help="of the large input")
    parser.add_argument(
        "--rates", type=int, nargs="*", default=_RATES, help="records per second of latencies; none = no such"
    )
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="for which a latency is measured")
    every = list(LATENCY_ENGINES)
    parser.add_argument(
        "--latency-engines", nargs="+", choices=every, default=every, metavar="ENGINE", help=", ".join(every)
    )
    parser.add_argument(
        "--keep", metavar="DIRECTORY", help="inputs and logs stay there; inputs are used again"
    )
    arguments = parser.parse_args()
    cases = [case for case in CASES if case.name in arguments.cases]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="yarnflow-bench-") as name, contextlib.ExitStack() as stack:
        scratch = Path(arguments.keep or name).resolve()
        sizes = arguments.records // _LARGER, arguments.records
        small, large = (make_files(scratch / "inputs", records) for records in sizes)
        with_topics = arguments.rates or any(case.kafka for case in cases)
        broker = stack.enter_context(_broker(Path(name) / "kafka")) if with_topics else None
        topics = None if broker is None else (make_topic(broker, small), make_topic(broker, large))
        for case in cases:
            inputs = topics if case.kafka and topics is not None else (small, large)
            wanted = [expected(case.pipeline, bids) for bids in inputs]
            engines = [engine for engine in arguments.engines if engine in case.programs]
            found[case.name] = _with_ratios(
                {engine: _figures(case, engine, inputs, wanted, scratch) for engine in engines}
            )
        latencies = {} if broker is None else _latencies(broker, arguments, scratch)
    result: dict[str, Any] = {"bench": "stream", "processors": os.cpu_count()}
    result["load"] = round(psutil.getloadavg()[0], 1)
    print(json.dumps(result | {"cases": found, "latencies": latencies}))


def _latencies(broker: KafkaBroker, arguments: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pipeline, rate in itertools.product(PIPELINES, arguments.rates):
        name = f"{pipeline}-{rate}"
        for engine in arguments.latency_engines:
            print(f"{name} {engine}", file=sys.stderr, flush=True)
            directory = scratch / f"latency-{name}-{engine}"
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(parents=True)
            figures = latency(broker, pipeline, engine, rate, arguments.seconds, directory)
            print(f"  {figures}", file=sys.stderr, flush=True)
            found.setdefault(name, {})[engine] = figures
    return found


@contextlib.contextmanager
def _broker(folder: Path) -> Iterator[KafkaBroker]:
    broker = KafkaBroker.start(folder)
    try:
        yield broker
    finally:
        broker.stop()


def _figures(
    case: Case, engine: str, inputs: tuple[Bids, Bids], wanted: list[Counter[str]], scratch: Path
) -> dict[str, Any]:
    """Figures of one case on one engine, or why there are none."""
    runs, wrong = [], []
    for bids, lines in zip(inputs, wanted, strict=True):
        print(f"{case.name} {engine} {bids.records:,}", file=sys.stderr, flush=True)
        directory = scratch / f"{case.name}-{engine}-{bids.records}"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        try:
            run = measure(command(engine, case, bids, directory / "out", directory))
        except RunFailed as failed:
            print(failed, file=sys.stderr, flush=True)
            return {"error": str(failed).splitlines()[0], "records_per_s": None}
        found = written(directory / "out")
        wrong.append({"missing": (lines - found).total(), "additional": (found - lines).total()})
        print(f"  {run.total_s:.1f} s, {run.peak_mib} MiB, {wrong[-1]}", file=sys.stderr, flush=True)
        runs.append(run)
        shutil.rmtree(directory / "out")
    small, large = inputs
    return {
        "records_per_s": steady_rate((small.records, large.records), runs),
        "total_s": [round(run.total_s, 1) for run in runs],
        "peak_mib": runs[1].peak_mib,
        "records": [small.records, large.records],
        # of the lines that there should be
        "lines": [lines.total() for lines in wanted],
        "wrong": wrong,
    }


def _with_ratios(engines: dict[str, Any]) -> dict[str, Any]:
    """The figures with yarnflow's ÷ each other's: above 1 is ahead, of whole times below 1."""
    own = engines.get(YARNFLOW, {})
    ratios: dict[str, float] = {}
    for engine, figures in engines.items():
        if engine == YARNFLOW or not own.get("records_per_s") or not figures.get("records_per_s"):
            continue
        ratios[f"rate_to_{engine}"] = round(own["records_per_s"] / figures["records_per_s"], 2)
        ratios[f"whole_time_to_{engine}"] = round(own["total_s"][1] / figures["total_s"][1], 2)
    return engines | ratios


if __name__ == "__main__":
    main()
