"""``scripts/bench pyflink``."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import psutil

from integration.bench.pyflink.cases import CASES, PROCESS, THREAD, YARNFLOW, Case, without_subtask
from integration.bench.pyflink.engines import ENGINES, command
from integration.bench.pyflink.inputs import Input, make_input
from integration.bench.pyflink.measured_run import MeasuredRun, RunFailed, measure, steady_rate
from integration.bench.pyflink.profile import profile

_PROFILED_RECORDS: Final = 300_000
#: the large input is so many times the small one
_LARGER: Final = 4


def main() -> None:
    """Run the cases and print one JSON object."""
    parser = argparse.ArgumentParser(prog="scripts/bench pyflink")
    names = [case.name for case in CASES]
    parser.add_argument(
        "--cases", nargs="+", choices=names, default=names, metavar="CASE", help=", ".join(names)
    )
    parser.add_argument(
        "--engines", nargs="+", choices=ENGINES, default=ENGINES, metavar="ENGINE", help=", ".join(ENGINES)
    )
    parser.add_argument(
        "--records", type=int, help="of the large input, for every engine (default: as each one needs)"
    )
    parser.add_argument(
        "--keep", metavar="DIRECTORY", help="inputs and logs stay there; inputs are used again"
    )
    parser.add_argument(
        "--profile", type=int, metavar="TOP", help="only yarnflow's Python in one process; list TOP functions"
    )
    arguments = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="yarnflow-bench-") as name:
        bench = Bench(Path(arguments.keep or name).resolve(), arguments.records)
        for case in CASES:
            if case.name not in arguments.cases:
                continue
            if arguments.profile is not None:
                found[case.name] = bench.profile(case, arguments.profile)
            else:
                engines = [e for e in ENGINES if e in arguments.engines and e in case.records]
                found[case.name] = with_ratios({engine: bench.run(case, engine) for engine in engines})
    result: dict[str, Any] = {"bench": "pyflink", "processors": os.cpu_count()}
    result["load"] = round(psutil.getloadavg()[0], 1)
    print(json.dumps(result | {"cases": found}))


class Bench:
    """Runs cases on engines.

    Parameters
    ----------
    scratch : Path
        For inputs, and for what runs leave.
    records : int or None
        Of the large inputs; None = as the case says.
    """

    def __init__(self, scratch: Path, records: int | None) -> None:
        self._scratch = scratch
        self._records = records
        self._inputs: dict[tuple[Any, ...], Input] = {}

    def run(self, case: Case, engine: str) -> dict[str, Any]:
        """Figures of one case on one engine, or why there are none."""
        try:
            return self._figures(case, engine)
        except RunFailed as failed:
            print(failed, file=sys.stderr, flush=True)
            return {"error": str(failed).splitlines()[0], "records_per_s": None}

    def _figures(self, case: Case, engine: str) -> dict[str, Any]:
        records = self._records or case.records[engine]
        small, large = self._input(case, records // _LARGER), self._input(case, records)
        first, second = self._measure(case, engine, small), self._measure(case, engine, large)
        return {
            "records_per_s": steady_rate((small.records, large.records), (first, second)),
            "first_result_s": None if first.first_line_s is None else round(first.first_line_s, 1),
            "peak_mib": second.peak_mib,
            "records": [small.records, large.records],
            "total_s": [round(first.total_s, 1), round(second.total_s, 1)],
            "lost": _lost(case, large, second),
        }

    def profile(self, case: Case, top: int) -> dict[str, float]:
        """CPU time of yarnflow's Python per record, in µs."""
        source = self._input(case, self._records or _PROFILED_RECORDS)
        return profile(case, source.directory, source.records, top)

    def _measure(self, case: Case, engine: str, source: Input) -> MeasuredRun:
        print(f"{case.name} {engine} {source.records:,}", file=sys.stderr, flush=True)
        directory = self._scratch / f"{case.name}-{engine}-{source.records}"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        found = measure(command(engine, case, source.directory, directory))
        print(f"  {found.total_s:.1f} s, {found.peak_mib} MiB", file=sys.stderr, flush=True)
        return found

    def _input(self, case: Case, records: int) -> Input:
        shape = (case.order, case.keys, records)
        if shape not in self._inputs:
            self._inputs[shape] = make_input(self._scratch / "inputs", *shape)
        return self._inputs[shape]


def _lost(case: Case, source: Input, run: MeasuredRun) -> int | None:
    """Records that no printed result speaks of; None where nothing is printed."""
    if not run.lines:
        return None
    return source.told - sum(case.tells(without_subtask(line)) for line in run.lines)


def with_ratios(engines: dict[str, Any]) -> dict[str, Any]:
    """The figures with yarnflow's records per second ÷ those of each other engine."""
    own = engines.get(YARNFLOW, {}).get("records_per_s")
    ratios = {
        f"ratio_to_{engine}": round(own / figures["records_per_s"], 2)
        for engine, figures in engines.items()
        if engine != YARNFLOW and own and figures["records_per_s"]
    }
    if {PROCESS, THREAD} & engines.keys():
        ratios["ratio_to_faster_pyflink"] = min(
            (ratios[f"ratio_to_{e}"] for e in (PROCESS, THREAD) if f"ratio_to_{e}" in ratios), default=None
        )
    return engines | ratios


if __name__ == "__main__":
    main()
