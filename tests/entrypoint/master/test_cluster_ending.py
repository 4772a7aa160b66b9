"""The leader tells the other masters that the cluster has ended, also when ZooKeeper is away for a moment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from yarnflow.core.cluster_result import RESULT_FILE, ClusterResult
from yarnflow.core.states import JobStatus
from yarnflow.entrypoint.master import cluster_ending
from yarnflow.entrypoint.master.cluster_ending import ClusterEnding
from yarnflow.errors import LeadershipLost, YarnflowError, ZooKeeperUnavailable

RESULT = ClusterResult(JobStatus.FINISHED)


class End:
    """The cluster's end in ZooKeeper; the last error is raised again and again."""

    def __init__(self, *errors: YarnflowError, forever: bool = False) -> None:
        self.errors = list(errors)
        self.forever = forever
        self.tries = 0
        self.declared: list[ClusterResult] = []

    def declare(self, result: ClusterResult) -> None:
        self.tries += 1
        if self.errors:
            raise self.errors[0] if self.forever else self.errors.pop(0)
        self.declared.append(result)

    def remove_cluster(self) -> None: ...


class Alone:
    """The only master."""

    def masters(self) -> list[Any]:
        return []


def declare(tmp_path: Path, end: End) -> None:
    ClusterEnding(tmp_path, Alone(), end).declare(RESULT)  # type: ignore[arg-type]
    assert (tmp_path / RESULT_FILE).exists(), "the supervisor learns it in any case"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_ending, "_RETRY_S", 0.01)
    monkeypatch.setattr(cluster_ending, "DECLARE_S", 0.1)


def test_it_is_tried_again(tmp_path: Path) -> None:
    end = End(ZooKeeperUnavailable("away"), ZooKeeperUnavailable("away"))
    declare(tmp_path, end)
    assert end.declared == [RESULT]


def test_not_forever(tmp_path: Path) -> None:
    end = End(ZooKeeperUnavailable("away"), forever=True)
    declare(tmp_path, end)
    assert end.declared == [] and end.tries > 1


def test_not_by_one_that_does_not_lead_any_more(tmp_path: Path) -> None:
    end = End(LeadershipLost("another one leads"))
    declare(tmp_path, end)
    assert end.tries == 1
