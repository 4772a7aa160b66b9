"""State that an earlier version has left is what today's version goes on from.

One cluster for all: it begins as the recorded one ended, when all its processes were killed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from integration.conftest import commands_in
from integration.hadoop import HadoopCluster
from integration.upgrade.cases import CASES, Case, Files
from integration.upgrade.cluster import ROOT_NODE, UpgradeCluster, checkpoints_in, ending, wait_while_running
from integration.upgrade.nodes import anybody_at, load_nodes, member_at
from integration.upgrade.places import own_place, put_secret, python_version, unpack
from integration.upgrade.stored_jobs import (
    FINISHED,
    RUNNING,
    STORED_CLUSTER,
    STORED_NODES,
    JobPlace,
    StoredJob,
)
from yarnflow.process.secret import read_secret

#: those of the stored jobs, and one for each job that is submitted
SLOTS: Final = len(RUNNING) + 1
ENDED: Final = ("FINISHED", "FAILED", "CANCELED")
#: elements and scripts, both backends and forms; the others start in a session, which is quicker
SUBMITTED: Final = {
    "keyed_state-rocksdb-checkpoint",
    "script-hashmap-savepoint",
    "script-rocksdb-savepoint",
}

pytestmark = pytest.mark.gate


@pytest.fixture(scope="module")
def cluster(hadoop: HadoopCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpgradeCluster]:
    """The recorded cluster, which a new master leads."""
    with commands_in(tmp_path_factory.mktemp("upgrade")) as commands, own_place("cluster") as place:
        unpack(STORED_CLUSTER, place)
        _delete_nodes(hadoop, place)
        with anybody_at(hadoop.zookeeper) as client:
            load_nodes(client, ROOT_NODE, STORED_NODES)
        with ending(UpgradeCluster(commands, place, hadoop.zookeeper)) as cluster:
            cluster.start(SLOTS)
            yield cluster
        _delete_nodes(hadoop, place)


def _delete_nodes(hadoop: HadoopCluster, place: Path) -> None:
    with member_at(hadoop.zookeeper, ROOT_NODE, read_secret(put_secret(place))) as client:
        client.delete(ROOT_NODE, recursive=True)


@pytest.mark.skipif(
    sys.version_info[:2] != python_version(), reason="no Python runs functions that another one has pickled"
)
@pytest.mark.parametrize("job", RUNNING, ids=lambda job: job.kind.name)
def test_a_stored_job_goes_on_under_its_key(cluster: UpgradeCluster, job: StoredJob) -> None:
    place = JobPlace(cluster, job)
    assert cluster.status(place.job_id) not in ENDED
    place.files.add_second_half()
    place.files.await_read([place.state])
    if job.job_key:
        assert place.submit() == place.job_id, "a second job of the key was started"
    cluster.run("stop", "--drain", "-p", f"file://{place.directory}/savepoints", place.job_id)
    assert place.files.results() == job.kind.all_results()


def test_how_a_job_ended_is_known(cluster: UpgradeCluster) -> None:
    assert cluster.status(JobPlace(cluster, FINISHED).job_id) == "FINISHED"


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in SUBMITTED], ids=lambda case: case.name
)
def test_a_job_starts_from_recorded_state(cluster: UpgradeCluster, case: Case) -> None:
    with own_place(case.name) as place:
        unpack(case.archive, place)
        files = Files(case.kind, place)
        files.add_first_half()
        files.add_second_half()
        saved = case.saved_in(place)
        command: list[str | Path] = [*case.options, checkpoints_in(place), "-s", f"file://{saved}"]
        command.append(place / case.program_path)
        if case.kind.is_script:
            # it is not drained, but reads to the end of what there is
            cluster.run("submit", *command, *files.arguments(bounded=True))
        else:
            submit, job_id = cluster.follow(*command, *files.arguments())
            state = place / "checkpoints" / job_id
            wait_while_running(submit, lambda: files.are_read([state]), "the second half to be read")
            cluster.run("stop", "--drain", "-p", f"file://{place}/drained", job_id)
            assert submit.wait() == 0, submit.stderr
        assert files.results() == case.kind.all_results()
