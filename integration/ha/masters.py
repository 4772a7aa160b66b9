"""Candidates that note what they are told."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from integration.conftest import wait_until
from yarnflow.core.ha.ports import MasterInfo
from yarnflow.core.messages import Fence, LeaderInfo
from yarnflow.ha.services import ZooKeeper, ZooKeeperElection


@dataclass
class Master:
    """One candidate."""

    zookeeper: ZooKeeper
    name: str
    told: list[str] = field(default_factory=list)
    fence: Fence = Fence("", 0)

    def __post_init__(self) -> None:
        self.election = ZooKeeperElection(self.zookeeper)

    def standing_by(self) -> None:
        """Like all others."""

    def granted(self, fence: Fence) -> None:
        self.fence = fence
        self.told.append("granted")

    def suspended(self) -> None:
        self.told.append("suspended")

    def resumed(self) -> None:
        self.told.append("resumed")

    def revoked(self) -> None:
        self.told.append("revoked")

    @property
    def leader_info(self) -> LeaderInfo:
        """What it publishes."""
        return LeaderInfo(self.fence, f"{self.name}:1", "0", "cluster")

    def stand(self) -> Master:
        """Begin its candidacy."""
        self.election.start(self, MasterInfo(self.name, f"{self.name}:1", "host", os.getpid()))
        return self

    def lead(self) -> Master:
        """Stand, and wait until it leads and has said so."""
        self.stand()
        self.await_lead()
        self.election.publish(self.leader_info)
        return self

    def await_lead(self) -> None:
        """It leads."""
        wait_until(lambda: self.fence.epoch, f"{self.name} to lead")
