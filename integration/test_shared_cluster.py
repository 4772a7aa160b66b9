"""Who gets the cluster that tests share, and what a test may do to it; no process is started."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from integration.conftest import Commands
from integration.shared_cluster import ClusterKeeper, SharedCluster

pytestmark = pytest.mark.gate


@dataclass
class Cluster:
    """In place of a :class:`SharedCluster`."""

    works: bool = True
    jobs: dict[str, str] = field(default_factory=dict)

    def live_jobs(self) -> dict[str, str]:
        return dict(self.jobs)

    def cancel(self, job_id: str) -> None:
        del self.jobs[job_id]


@dataclass
class Started:
    """The keeper, and the clusters that it has started."""

    directory: Path
    clusters: list[Cluster] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.keeper = ClusterKeeper(lambda: self.directory, self._start)

    def _start(self, _commands: Commands) -> SharedCluster:
        self.clusters.append(Cluster())
        return cast(SharedCluster, self.clusters[-1])


@pytest.fixture
def started(tmp_path: Path) -> Started:
    return Started(tmp_path)


def test_a_cluster_that_works_is_lent_again(started: Started) -> None:
    for _ in range(2):
        with started.keeper.lent() as cluster:
            assert cluster.works and len(started.clusters) == 1


@pytest.mark.parametrize("when", ["while it is lent", "afterwards"])
def test_a_cluster_that_is_broken_is_replaced_for_the_next_test(started: Started, when: str) -> None:
    with started.keeper.lent():
        started.clusters[0].works = when == "afterwards"
    started.clusters[0].works = False
    with started.keeper.lent() as cluster:
        assert cluster.works and len(started.clusters) == 2


def test_a_job_that_is_left_fails_its_test_and_is_not_there_for_the_next(started: Started) -> None:
    with pytest.raises(AssertionError, match="left on the shared cluster: {'1': 'endless'}"):
        with started.keeper.lent():
            started.clusters[0].jobs["1"] = "endless"
    with started.keeper.lent() as cluster:
        assert cluster.live_jobs() == {}
