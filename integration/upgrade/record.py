"""Record the state of all cases: ``python -m integration.upgrade.record NAME``.

By the yarnflow that is installed.  ``NAME`` is that of its version, and of the directory in ``data``.
What is recorded already stays.  It takes some minutes, and starts a ZooKeeper.
"""

from __future__ import annotations

import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from integration.conftest import commands_in, wait_until
from integration.hadoop import HadoopCluster
from integration.upgrade.cases import CASES, KINDS, Case, Files, Kind
from integration.upgrade.cluster import ROOT_NODE, UpgradeCluster, checkpoints_in, ending
from integration.upgrade.nodes import member_at, record_nodes
from integration.upgrade.places import DATA, VERSION, own_place, pack
from integration.upgrade.stored_jobs import FINISHED, RUNNING, STORED_CLUSTER, STORED_NODES, JobPlace
from tests.upgrade import recorded_graphs
from yarnflow.process.secret import create_secret, read_secret

_SLOTS: Final = 3


def main() -> None:
    """Record what is missing."""
    if sys.argv[1:] != [VERSION]:
        sys.exit(f"usage: python -m integration.upgrade.record {VERSION}")
    directory = DATA / VERSION
    directory.mkdir(parents=True, exist_ok=True)
    if not (directory / "cluster-secret").exists():
        create_secret(directory / "cluster-secret")
    (directory / "python-version").write_text(f"{platform.python_version()}\n", encoding="utf-8")
    with own_place("graphs") as place:
        recorded_graphs.record(place)
    with tempfile.TemporaryDirectory() as temporary:
        hadoop = HadoopCluster.start(Path(temporary) / "hadoop")
        try:
            _record_states(hadoop.zookeeper)
            if not STORED_CLUSTER.exists():
                _record_cluster(hadoop.zookeeper)
        finally:
            hadoop.stop()
    print(f"{sum(path.stat().st_size for path in directory.rglob('*'))} bytes in {directory}")


@contextmanager
def _cluster(name: str, quorum: str) -> Iterator[UpgradeCluster]:
    with tempfile.TemporaryDirectory() as temporary, commands_in(Path(temporary)) as commands:
        with own_place(name) as place:
            with ending(UpgradeCluster(commands, place, quorum)) as cluster:
                cluster.start(_SLOTS)
                yield cluster
            with member_at(quorum, ROOT_NODE, read_secret(cluster.secret_file)) as client:
                client.delete(ROOT_NODE, recursive=True)


def _record_states(quorum: str) -> None:
    with _cluster("states", quorum) as cluster:
        for kind in KINDS.values():
            if not kind.expected.exists():
                _record_results(cluster, kind)
        for case in CASES:
            if not case.archive.exists():
                _record_case(cluster, case)


def _record_results(cluster: UpgradeCluster, kind: Kind) -> None:
    """Record what a run gives that nobody stops."""
    with own_place(kind.name) as place:
        files = Files(kind, place)
        files.add_first_half()
        files.add_second_half()
        program = place / "programs" / kind.program.name
        cluster.run("submit", checkpoints_in(place), program, *files.arguments(bounded=True, stopped=False))
        lines = sorted(files.results().elements())
        kind.expected.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        print(f"{kind.name}: {len(lines)} results", flush=True)


def _record_case(cluster: UpgradeCluster, case: Case) -> None:
    with own_place(case.name) as place:
        files = Files(case.kind, place)
        job_id = cluster.submit(
            *case.options, checkpoints_in(place), place / case.program_path, *files.arguments()
        )
        state = place / "checkpoints" / job_id
        files.feed([state, place / "out-checkpoint"] if case.kind.is_script else [state])
        names = ["out"]
        if case.form == "savepoint":
            saved = cluster.run("stop", "-p", f"file://{place}/savepoints", job_id).stdout.strip()
            Path(saved.removeprefix("file://")).rename(place / "savepoint")
            names.append("savepoint")
        else:
            cluster.run("checkpoint", job_id)
            cluster.run("cancel", job_id)
            names.append("checkpoints")
        if case.keeps_location:
            names.append("out-checkpoint")
        pack(place, names, case.archive)
        print(f"{case.name}: {case.archive.stat().st_size} bytes", flush=True)


def _record_cluster(quorum: str) -> None:
    """Record a cluster all of whose processes were killed at once while jobs ran."""
    with _cluster("cluster", quorum) as cluster:
        finished = JobPlace(cluster, FINISHED)
        finished.files.add_first_half()
        finished.note(finished.submit(bounded=True))
        running = [JobPlace(cluster, job) for job in RUNNING]
        for place in running:
            place.note(place.submit())
        for place in running:
            place.files.feed([place.state])
            cluster.run("checkpoint", place.job_id)
        wait_until(lambda: cluster.status(finished.job_id) == "FINISHED", "a job to finish", pause_s=1.0)
        cluster.kill()
        shutil.rmtree(cluster.directory / "tmp")
        with member_at(quorum, ROOT_NODE, read_secret(cluster.secret_file)) as client:
            record_nodes(client, ROOT_NODE, STORED_NODES)
        names = {path.name for path in cluster.directory.iterdir()} - {cluster.secret_file.name, "programs"}
        pack(cluster.directory, sorted(names), STORED_CLUSTER)


if __name__ == "__main__":
    main()
