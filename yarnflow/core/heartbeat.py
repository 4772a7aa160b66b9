"""Who has not been heard of for too long.

Keeps for each target when it was last heard of and how many calls to it failed in a row, and
says which targets count as lost.  It sends nothing and reads no clock.

Two ways to be lost, as in Flink: silence for ``heartbeat.timeout``, or
``heartbeat.rpc-failure-threshold`` failed calls one after the other (-1 = silence only).

Flink counterparts: ``HeartbeatMonitorImpl``, ``HeartbeatManagerImpl``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What is known of one target."""

    last_seen_ms: int
    #: failed calls since the last sign of life
    rpc_failures: int = 0


@dataclass(frozen=True, slots=True)
class HeartbeatMonitor:
    """All targets one endpoint watches; every method returns a new value."""

    timeout_ms: int
    #: -1 = failed calls are never enough
    rpc_failure_threshold: int = 2
    #: target id → what is known
    targets: Mapping[str, Heartbeat] = field(default_factory=dict)

    def monitor(self, target: str, at_ms: int) -> HeartbeatMonitor:
        """Watch a target from now on; one that is watched already counts as heard of."""
        return replace(self, targets={**self.targets, target: Heartbeat(at_ms)})

    def unmonitor(self, target: str) -> HeartbeatMonitor:
        """Stop watching.  Idempotent."""
        return replace(self, targets={name: beat for name, beat in self.targets.items() if name != target})

    def received(self, target: str, at_ms: int) -> HeartbeatMonitor:
        """A sign of life; one of a target that is not watched is ignored."""
        beat = self.targets.get(target)
        if beat is None:
            return self
        return self.monitor(target, max(at_ms, beat.last_seen_ms))

    def restarted(self, at_ms: int) -> HeartbeatMonitor:
        """Nobody could be heard until now: all targets have the whole time-out again."""
        return replace(self, targets={name: Heartbeat(at_ms) for name in self.targets})

    def rpc_failed(self, target: str) -> tuple[HeartbeatMonitor, bool]:
        """A call to the target failed.

        Returns
        -------
        tuple
            The new monitor, and whether the threshold was reached by this failure (once only).
        """
        beat = self.targets.get(target)
        if beat is None:
            return self, False
        failures = beat.rpc_failures + 1
        after = replace(self, targets={**self.targets, target: replace(beat, rpc_failures=failures)})
        return after, failures == self.rpc_failure_threshold

    def expired(self, at_ms: int) -> tuple[str, ...]:
        """Targets that have been silent for the time-out, in order of watching."""
        return tuple(
            name for name, beat in self.targets.items() if at_ms - beat.last_seen_ms >= self.timeout_ms
        )
