"""How fast the REST interface answers with many jobs, beside Flink's, and what it costs.

One yarnflow JobManager has running jobs and TaskManagers as in ``bench scale``; one JobManager of Flink has
as many jobs, each with one vertex and one subtask as here, which wait for slots, as it has no TaskManagers.
The same clients ask both in turns.  Flink answers ``/jobs/:jobid`` from what it has kept for up to
``web.refresh-interval``, 3 s; yarnflow keeps nothing.  Prints one line of JSON::

    scripts/bench rest --jobs 1000 --task-managers 100 --clients 8 --seconds 10 --before CHECKOUT

``--before`` is a folder with an earlier version of this project, for a JobManager's start and memory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from integration.bench.rest.flink import flink_job_manager, get
from integration.bench.rest.load import load
from integration.bench.rest.page import measure_page
from integration.bench.rest.start import measure_starts
from integration.bench.scale import Bench

_ROOT: Final = Path(__file__).resolve().parents[3]
_PARTS: Final = ("start", "page", "answers")
#: nobody sends heartbeats meanwhile
_SETTINGS: Final = {"rest.port": "0", "heartbeat.timeout": "24 h", "driver.heartbeat.timeout": "24 h"}
#: address, token, and what its process has had of a processor, in seconds
Server = tuple[str, str, Callable[[], float]]


def measure(options: argparse.Namespace, servers: dict[str, Server]) -> dict[str, Any]:
    """Both servers in turns: medians of the rounds, and ours over Flink's.

    Parameters
    ----------
    servers : dict
        By name: yarnflow, then Flink.
    """
    ids = {
        of: [job["id"] for job in get(f"{url}/jobs", token)["jobs"]]
        for of, (url, token, _) in servers.items()
    }
    result: dict[str, Any] = {}
    for name in ("/jobs/overview", "/jobs/:jobid", "/overview"):
        paths = {of: [name.replace(":jobid", job_id) for job_id in ids[of]] for of in servers}
        rounds: dict[str, list[dict[str, float]]] = {of: [] for of in servers}
        for of, (url, token, _) in servers.items():
            load(url, paths[of], options.clients, min(options.seconds, 3), token)  # compiled, loaded, kept
        for _ in range(options.rounds):
            for of, (url, token, cpu_s) in servers.items():
                before_s = cpu_s()
                found = load(url, paths[of], options.clients, options.seconds, token)
                found["cpu_ms_per_answer"] = (cpu_s() - before_s) / found["answers"] * 1000
                rounds[of].append(found)
        ours, theirs = (
            {key: round(median(each[key] for each in found), 2) for key in found[0]}
            for found in rounds.values()
        )
        result[name] = {
            "yarnflow": ours,
            "flink": theirs,
            "per_second_ratio": round(ours["per_second"] / theirs["per_second"], 3),
            "p99_ratio": round(ours["p99_ms"] / theirs["p99_ms"], 3),
            "cpu_ratio": round(ours["cpu_ms_per_answer"] / theirs["cpu_ms_per_answer"], 3),
        }
    return result


def main(argv: Sequence[str]) -> int:
    """Run once and print the result."""
    parser = argparse.ArgumentParser(description="Measure the REST interface beside Flink's.")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--task-managers", type=int, default=100)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", type=Path, help="checkout of an earlier version")
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=_PARTS)
    options = parser.parse_args(argv)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    result: dict[str, Any] = {
        "bench": "rest",
        "jobs": options.jobs,
        "task_managers": options.task_managers,
        "clients": options.clients,
        "load_average": round(os.getloadavg()[0], 1),
    }
    checkouts = {"now": _ROOT}
    if options.before is not None:
        checkouts["before"] = options.before.resolve()
    if "start" in options.parts:
        result["start"] = measure_starts(checkouts, options.rounds)
    if options.parts == ["start"]:
        print(json.dumps(result))
        return 0
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as flink_scratch:
        # its clients are those of another protocol
        bench = Bench(argparse.Namespace(**{**vars(options), "clients": 0}), scratch, _SETTINGS)
        try:
            bench.set_up()
            url = json.loads((Path(scratch) / "jobmanager.json").read_text())["web_address"]
            token = json.loads((Path(scratch) / "rest-tokens.json").read_text())["read"]
            before_mib = bench.usage()[1]
            if "page" in options.parts:
                result["page"] = [
                    measure_page(url, place, options.rounds, token) for place in ("overview", "jobs")
                ]
            with flink_job_manager(Path(flink_scratch)) as flink:
                flink.submit(options.jobs)
                result["answers"] = measure(
                    options,
                    {
                        "yarnflow": (url, token, lambda: bench.usage()[0]),
                        "flink": (flink.url, "", flink.cpu_s),
                    },
                )
                for of, said in ((url, token), (flink.url, "")):
                    states = Counter(job["status"] for job in get(f"{of}/jobs", said)["jobs"])
                    if states != {"RUNNING": options.jobs}:
                        raise SystemExit(f"rest: jobs of {of} have not stayed as they were: {dict(states)}")
                result["memory"] = {
                    "yarnflow_most_mib": bench.usage()[1],
                    "yarnflow_before_any_request_mib": before_mib,
                    "flink_rss_mib": flink.rss_mib,
                }
                result["flink_seconds_until_it_serves"] = round(flink.seconds_until_it_serves, 1)
        finally:
            bench.close()
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
