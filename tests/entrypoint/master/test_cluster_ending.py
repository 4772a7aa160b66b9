"""The leader tells the other masters that the cluster has ended, also when ZooKeeper is away for a moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from yarnflow.core.cluster_result import RESULT_FILE, ClusterResult
from yarnflow.core.states import JobStatus
from yarnflow.entrypoint.master import cluster_ending
from yarnflow.entrypoint.master.cluster_ending import ClusterEnding
from yarnflow.errors import LeadershipLost, ZooKeeperUnavailable
from yarnflow.testing.ha.cluster_end import FakeClusterEnd
from yarnflow.testing.ha.election import FakeElection

RESULT = ClusterResult(JobStatus.FINISHED)


def declare(tmp_path: Path, end: FakeClusterEnd) -> None:
    ClusterEnding(tmp_path, FakeElection(), end).declare(RESULT)
    assert (tmp_path / RESULT_FILE).exists(), "the supervisor learns it in any case"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_ending, "_RETRY_S", 0.01)
    monkeypatch.setattr(cluster_ending, "DECLARE_S", 0.1)


def test_it_is_tried_again(tmp_path: Path) -> None:
    end = FakeClusterEnd()
    end.failures = [ZooKeeperUnavailable("away"), ZooKeeperUnavailable("away")]
    declare(tmp_path, end)
    assert end.declared == [RESULT]


def test_not_forever(tmp_path: Path) -> None:
    end = FakeClusterEnd()
    end.error = ZooKeeperUnavailable("away")
    declare(tmp_path, end)
    assert end.declared == [] and end.attempts > 1


def test_not_by_one_that_does_not_lead_any_more(tmp_path: Path) -> None:
    end = FakeClusterEnd()
    end.failures = [LeadershipLost("another one leads")]
    declare(tmp_path, end)
    assert end.attempts == 1
