"""Until when a lease holder may write, from its own clock alone.

A lease is an ephemeral node: it is there as long as ZooKeeper hears of its session, and for one
session time-out after.  The holder cannot know when its last message arrived, but it knows
when it *sent* the last one that was answered: counted from there, nobody else can have the lease
for a whole session time-out.  It stops at two thirds of that; the rest is for what it is in the
middle of.  Never reads a clock; the times are of one that does not stop while the process is
stopped, and does not jump (``CLOCK_BOOTTIME`` where there is one).

Flink has none: its JobManagers may write for as long as they do not notice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

#: part of the session time-out a holder uses, as a fraction
_USED_NUMERATOR: Final = 2
_USED_DENOMINATOR: Final = 3


class LeaseState(Enum):
    """What a would-be holder knows of its lease."""

    #: not taken yet
    WAITING = "WAITING"
    HELD = "HELD"
    #: it may be somebody else's: for good, whatever is heard later
    LOST = "LOST"
    #: given back
    RELEASED = "RELEASED"


@dataclass(frozen=True, slots=True)
class LeaseClock:
    """One process's lease; every method returns a new value.

    Times are milliseconds of the process's own monotonic clock.
    """

    #: as agreed with ZooKeeper, which may grant less than was asked for
    session_timeout_ms: int
    state: LeaseState = LeaseState.WAITING
    #: nobody else can have it before; meaningless unless HELD
    valid_until_ms: int = -1
    #: why it is LOST, one line
    reason: str = ""

    @property
    def term_ms(self) -> int:
        """How long one answer from ZooKeeper lasts."""
        return self.session_timeout_ms * _USED_NUMERATOR // _USED_DENOMINATOR

    def acquired(self, sent_ms: int) -> LeaseClock:
        """The node is ours; ``sent_ms`` = just before the call that said so was sent."""
        if self.state is not LeaseState.WAITING:
            return self
        return replace(self, state=LeaseState.HELD, valid_until_ms=sent_ms + self.term_ms)

    def renewed(self, sent_ms: int) -> LeaseClock:
        """ZooKeeper answered that the node is still ours, to a call sent at ``sent_ms``.

        Answers may come in any order; none shortens what an earlier one gave.
        """
        if self.state is not LeaseState.HELD:
            return self
        return replace(self, valid_until_ms=max(self.valid_until_ms, sent_ms + self.term_ms))

    def may_write(self, at_ms: int) -> bool:
        """Whether nobody else can have the lease at ``at_ms``."""
        return self.state is LeaseState.HELD and at_ms < self.valid_until_ms

    def looked_at(self, at_ms: int) -> LeaseClock:
        """LOST from now on if it ran out by ``at_ms``: once doubted, never written under again."""
        if self.state is not LeaseState.HELD or at_ms < self.valid_until_ms:
            return self
        return self.lost(f"ZooKeeper did not answer for {self.term_ms} ms")

    def lost(self, reason: str) -> LeaseClock:
        """The session is over, or the node is another's or gone."""
        if self.state in (LeaseState.LOST, LeaseState.RELEASED):
            return self
        return replace(self, state=LeaseState.LOST, reason=reason)

    def released(self) -> LeaseClock:
        """This process gives it back; it must have stopped writing before."""
        if self.state is LeaseState.LOST:
            return self
        return replace(self, state=LeaseState.RELEASED)
