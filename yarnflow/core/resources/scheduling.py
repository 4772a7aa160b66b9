"""When a job that lacks slots may run, and when it gives up waiting.

``default`` runs with every slot or not at all; ``adaptive`` takes what there is.  Neither stops a
job that runs: when slots are lost, Spark reruns their tasks on those that are left.

Decides from times and numbers alone; where slots come from and what runs on them is for others.

Flink counterparts: ``DefaultScheduler``'s slot time-out; ``AdaptiveScheduler``'s
``WaitingForResources`` and ``DefaultStateTransitionManager``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

NEVER_MS: Final = -1


class SchedulerKind(Enum):
    """Values of ``jobmanager.scheduler``."""

    DEFAULT = "default"
    ADAPTIVE = "adaptive"


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """One job's options about waiting for slots."""

    kind: SchedulerKind = SchedulerKind.DEFAULT
    #: default only: ``slot.request.timeout``
    slot_request_timeout_ms: int = 300_000
    #: adaptive only: longest wait for all slots
    resource_wait_timeout_ms: int = 300_000
    #: adaptive only: no further slot for so long, and it starts with those there are
    stabilization_timeout_ms: int = 10_000

    @property
    def adaptive(self) -> bool:
        """The job takes what there is."""
        return self.kind is SchedulerKind.ADAPTIVE

    @property
    def patience_ms(self) -> int:
        """The longest wait for slots, as the error about it says."""
        return self.resource_wait_timeout_ms if self.adaptive else self.slot_request_timeout_ms


@dataclass(frozen=True, slots=True)
class SlotWait:
    """How a job's wait for slots stands; every method returns a new value.

    Times are those of a monotonic clock.
    """

    settings: SchedulerSettings
    required: int
    have: int = 0
    #: the present wait began
    since_ms: int = 0
    #: a slot came last
    arrived_ms: int = NEVER_MS
    #: the job uses what it has, and goes on rather than begins
    begun: bool = False
    #: the cluster said that it can never give all of them
    refused_ms: int = NEVER_MS

    # --- what happens ---

    def waiting(self, now_ms: int) -> SlotWait:
        """A wait begins: at the start, and whenever slots are lost."""
        return replace(self, since_ms=now_ms)

    def with_slots(self, have: int, now_ms: int) -> SlotWait:
        """The job has another number of slots."""
        return replace(self, have=have, arrived_ms=now_ms if have > self.have else self.arrived_ms)

    def begin(self) -> SlotWait:
        """The slots there are will be used, and further ones as they come."""
        return replace(self, begun=True)

    def driver_lost(self) -> SlotWait:
        """Nothing runs any more: the default scheduler begins anew, the adaptive one just goes on."""
        return self if self.settings.adaptive else replace(self, begun=False)

    def refused(self, now_ms: int) -> SlotWait:
        """The cluster can never give all the slots."""
        return replace(self, refused_ms=now_ms) if self.refused_ms == NEVER_MS else self

    # --- what follows ---

    @property
    def is_complete(self) -> bool:
        """Nothing is missing."""
        return self.have >= self.required

    def may_run(self, now_ms: int) -> bool:
        """Whether the slots there are should be used."""
        if self.is_complete:
            return True
        if self.begun:
            return self.have > 0
        return self.settings.adaptive and self.have > 0 and now_ms >= self._settled_ms

    def is_hopeless(self, now_ms: int, working: bool) -> bool:
        """Whether to give up; asked when :attr:`check_at_ms` has come.

        Parameters
        ----------
        now_ms : int
            Now.
        working : bool
            Something of the job runs, on whatever slots there are.
        """
        if self.is_complete or now_ms < self._patience_ends_ms:
            return False
        return not self.have or not (working or self.settings.adaptive)

    @property
    def check_at_ms(self) -> int:
        """When time alone changes the answers; ``NEVER_MS`` = it does not."""
        if self.is_complete:
            return NEVER_MS
        if self.settings.adaptive and self.have:
            return NEVER_MS if self.begun else self._settled_ms
        return self._patience_ends_ms

    @property
    def _settled_ms(self) -> int:
        patience_ends_ms = self.since_ms + self.settings.resource_wait_timeout_ms
        return min(self.arrived_ms + self.settings.stabilization_timeout_ms, patience_ends_ms)

    @property
    def _patience_ends_ms(self) -> int:
        ends_ms = self.since_ms + self.settings.patience_ms
        if self.refused_ms == NEVER_MS:
            return ends_ms
        # there may be a few: what was refused is all of them
        return min(ends_ms, max(self.refused_ms, self.since_ms) + self.settings.stabilization_timeout_ms)
