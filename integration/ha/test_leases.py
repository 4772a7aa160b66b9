"""Leases of drivers, on a real quorum."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from integration.conftest import wait_until
from integration.ha.conftest import LONG_MS, Cluster, end_session_of
from integration.ha.masters import Master
from yarnflow.core.ha.ports import DriverLeaseInfo
from yarnflow.core.ids import DriverId, JobId
from yarnflow.core.messages import Fence
from yarnflow.errors import LeadershipLost, LeaseLost
from yarnflow.fs.local import LocalFileSystem
from yarnflow.ha.services import ZooKeeperJobStores, ZooKeeperLease, ZooKeeperSettings
from yarnflow.ha.sessions import close_session_of

JOB = JobId("a" * 32)

_HOLDER = """
import json, sys
from pathlib import Path
from integration.ha.conftest import SECRET
from integration.ha.test_leases import JOB, info
from yarnflow.ha.services import ZooKeeperLease, ZooKeeperSettings, open_zookeeper
zookeeper = open_zookeeper(ZooKeeperSettings(**json.loads(sys.argv[1])), SECRET, Path(sys.argv[2]))
lease = ZooKeeperLease(zookeeper, JOB)
lease.acquire(info("holder"), 60_000)
print("held", flush=True)
for line in sys.stdin:
    try:
        if line == "release\\n":
            lease.release()
        else:
            lease.check()
        print("done", flush=True)
    except Exception as error:
        print(type(error).__name__, flush=True)
"""


def info(driver: str, attempt: int = 0) -> DriverLeaseInfo:
    return DriverLeaseInfo(JOB, DriverId(driver), f"{driver}:1", driver, 1, 1, attempt)


def stores_of(master: Master, storage: Path) -> ZooKeeperJobStores:
    return ZooKeeperJobStores(
        master.zookeeper, lambda uri: (LocalFileSystem(), uri), str(storage), lambda: master.fence
    )


@contextmanager
def holder(settings: ZooKeeperSettings, sessions: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has the lease; killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, json.dumps(asdict(settings)), str(sessions)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def ask(process: subprocess.Popen[str], what: str = "check") -> str:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{what}\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


@pytest.mark.gate
def test_one_driver_has_it_and_masters_see_which(cluster: Cluster, tmp_path: Path) -> None:
    master = Master(cluster.session(), "master").lead()
    leases = stores_of(master, tmp_path).leases
    seen: list[DriverLeaseInfo | None] = []
    leases.watch(JOB, seen.append)
    first, second = ZooKeeperLease(cluster.session(), JOB), ZooKeeperLease(cluster.session(), JOB)
    with pytest.raises(LeaseLost):
        first.check()
    first.acquire(info("one"), 60_000)
    first.check()
    # the master reads from another server, which may not have it yet
    wait_until(lambda: leases.holder(JOB) == info("one"), "the master to read the lease")
    # who watches reads it once more, and sees only what there is by then
    wait_until(lambda: info("one") in seen, "the master to see the lease")
    first.update(info("one", attempt=2))
    wait_until(lambda: leases.holder(JOB) == info("one", attempt=2), "the master to read the attempt")
    with pytest.raises(LeaseLost, match="held by .*one"):
        second.acquire(info("two"), 0)
    wait_until(lambda: seen[-1:] == [info("one", attempt=2)], "the master to see the attempt")
    first.release()
    first.release()
    for use in (first.check, lambda: first.update(info("one"))):
        with pytest.raises(LeaseLost):
            use()
    second.acquire(info("two"), 60_000)
    second.check()
    wait_until(lambda: seen[-1] == info("two"), "the master to see the second")
    assert seen[0] is None
    leases.unwatch(JOB)


@pytest.mark.gate
def test_second_driver_waits_for_the_first(cluster: Cluster, tmp_path: Path) -> None:
    settings = cluster.settings
    lost: list[str] = []
    with holder(settings, tmp_path) as process:
        file = tmp_path / f"{process.pid}.json"
        assert file.exists() and ask(process) == "done"
    lease = ZooKeeperLease(cluster.session(), JOB)
    lease.on_lost(lost.append)
    with pytest.raises(LeaseLost):
        lease.acquire(info("next"), 0)
    assert close_session_of(tmp_path, process.pid, settings)
    # less than the dead one's session would last
    lease.acquire(info("next"), LONG_MS // 2)
    lease.check()
    assert lost == []


@pytest.mark.gate
def test_frozen_driver_may_not_write_when_it_wakes(cluster: Cluster, tmp_path: Path) -> None:
    with holder(replace(cluster.settings, session_timeout_ms=6_000), tmp_path) as process:
        process.send_signal(signal.SIGSTOP)
        successor = ZooKeeperLease(cluster.session(), JOB)
        successor.acquire(info("next"), 120_000)
        process.send_signal(signal.SIGCONT)
        assert ask(process) == "LeaseLost"
        # and what it gives back is not its successor's
        assert ask(process, "release") == "done"
        assert stores_of(Master(cluster.session(), "any"), tmp_path).leases.holder(JOB) == info("next")
        successor.check()


def test_it_is_kept_as_long_as_zookeeper_answers(cluster: Cluster) -> None:
    lease = ZooKeeperLease(cluster.session(timeout_ms=12_000), JOB)
    lease.acquire(info("one"), 60_000)
    clock = lease._clock
    assert clock.session_timeout_ms == 12_000
    second_term_ends_ms = clock.valid_until_ms + clock.term_ms
    wait_until(lambda: lease._clock.valid_until_ms > second_term_ends_ms, "it to be renewed")
    lease.check()


def test_over_session_loses_it(cluster: Cluster) -> None:
    zookeeper = cluster.session()
    lease = ZooKeeperLease(zookeeper, JOB)
    lost: list[str] = []
    lease.on_lost(lost.append)
    lease.acquire(info("one"), 60_000)
    end_session_of(zookeeper)
    wait_until(lambda: lost, "the driver to know")
    for use in (lease.check, lambda: lease.update(info("one"))):
        with pytest.raises(LeaseLost):
            use()
    assert len(lost) == 1


def test_revoked_driver_knows_and_never_takes_it_again(cluster: Cluster, tmp_path: Path) -> None:
    leader = Master(cluster.session(), "leader").lead()
    standby = Master(cluster.session(), "standby").stand()
    leases = stores_of(leader, tmp_path).leases
    told: list[DriverId] = []
    stores_of(standby, tmp_path).leases.on_revoked(told.append)
    lease = ZooKeeperLease(cluster.session(), JOB)
    lost: list[str] = []
    lease.on_lost(lost.append)
    lease.acquire(info("one"), 60_000)
    with pytest.raises(LeadershipLost):
        stores_of(standby, tmp_path).leases.revoke(JOB, DriverId("one"))
    lease.check()
    leases.revoke(JOB, DriverId("one"))
    leases.revoke(JOB, DriverId("one"))
    wait_until(lambda: lost, "the driver to know")
    wait_until(lambda: told, "the other master to know")
    assert told == ["one"]
    with pytest.raises(LeaseLost):
        lease.check()
    with pytest.raises(LeaseLost, match="replaced"):
        ZooKeeperLease(cluster.session(), JOB).acquire(info("one"), 60_000)


def test_driver_of_a_removed_job_ends_in_peace(cluster: Cluster, tmp_path: Path) -> None:
    leader = Master(cluster.session(), "leader").lead()
    stores = stores_of(leader, tmp_path)
    lease = ZooKeeperLease(cluster.session(), JOB)
    lost: list[str] = []
    lease.on_lost(lost.append)
    lease.acquire(info("one"), 60_000)
    assert stores.checkpoints(JOB, str(tmp_path / "job")).next_id() == 1
    stores.job_graphs.remove(JOB)
    lease.check()
    assert leader.zookeeper.children(leader.zookeeper.path("jobs", JOB)) == ["driver"]
    lease.release()
    assert lost == []
    # the master's server may hear of it a moment later
    wait_until(lambda: leader.zookeeper.children(leader.zookeeper.path("jobs")) == [], "the job's node to go")


def test_what_a_killed_driver_left_goes_with_the_next_job(cluster: Cluster, tmp_path: Path) -> None:
    leader = Master(cluster.session(), "leader").lead()
    jobs = leader.zookeeper.path("jobs")
    leader.zookeeper.ensure("jobs", JOB)
    stores_of(leader, tmp_path).job_graphs.remove(JobId("b" * 32))
    assert leader.zookeeper.children(jobs) == []


def test_fence_of_nobody_is_refused(cluster: Cluster) -> None:
    zookeeper = cluster.session()
    zookeeper.create(zookeeper.ensure("jobs") + "/x", b"")
    zookeeper.create(zookeeper.path("epoch"), b"0")
    with pytest.raises(LeadershipLost):
        zookeeper.assert_leads(Fence("", 0).epoch)
