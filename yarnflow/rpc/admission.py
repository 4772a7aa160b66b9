"""Who may connect to a server before having said who he is.

A connection costs its peer nothing, so without bounds one silent peer would have all descriptors of
the process.  Bounded are the connections that have not authenticated, in all and of each address.  A
new one over the bound is not refused, since that would shut out those who mean well: the oldest of
the address that has most goes, if it has had time to authenticate.  So all processes of a host may
come at once; only when they take too large a part of the descriptors nobody is waited for.

Flink has no counterpart.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from yarnflow.rpc.descriptors import limit

C = TypeVar("C")

#: connections that have had time to authenticate and have not, in all and of one address, where
#: descriptors abound …
MAX_WAITING: Final = 1024
MAX_WAITING_PER_PEER: Final = 256
#: … and else this part of the descriptors, which is the most there may be without that time, too
_PART: Final = 4
#: the time to authenticate that each connection has
GRACE_S: Final = 1.0


class Admission(Generic[C]):
    """The connections of a server that have not authenticated yet.

    Parameters
    ----------
    max_waiting, max_per_peer : int
        How many of them there may be, in all and of one address, that have had ``grace_s``.
    grace_s : float
        Time that each of them has to authenticate, unless descriptors run short.
    """

    def __init__(
        self,
        max_waiting: int = MAX_WAITING,
        max_per_peer: int = MAX_WAITING_PER_PEER,
        grace_s: float = GRACE_S,
    ) -> None:
        self._most = max(limit() // _PART, 1)
        self._max_waiting = min(max_waiting, self._most)
        self._max_per_peer = min(max_per_peer, max(self._max_waiting // 2, 1))
        self._grace_s = grace_s
        #: address → its connections, the oldest first, with the time at which each came
        self._waiting: dict[str, dict[C, float]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def came(self, connection: C, peer: str, now_s: float) -> list[C]:
        """One more; returns those that have to go, which do not count any more.

        Parameters
        ----------
        peer : str
            Its address, without port.
        now_s : float
            By a clock that never goes back.
        """
        mine = self._waiting.setdefault(peer, {})
        mine[connection] = now_s
        self._count += 1
        gone = []
        while self._count > self._most and (victim := self.drop()) is not None:
            gone.append(victim)
        before_s = now_s - self._grace_s
        while len(mine) > self._max_per_peer and self._oldest_s(peer) <= before_s:
            gone.append(self._pop(peer))
        while self._count > self._max_waiting and (late := self._heaviest(before_s)) is not None:
            gone.append(self._pop(late))
        return gone

    def left(self, connection: C, peer: str) -> None:
        """It has authenticated, or is gone.  Idempotent."""
        mine = self._waiting.get(peer, {})
        if connection in mine:
            del mine[connection]
            self._count -= 1
            if not mine:
                del self._waiting[peer]

    def drop(self) -> C | None:
        """The oldest of the address that has most, which does not count any more; None = there is none."""
        peer = self._heaviest(float("inf"))
        return None if peer is None else self._pop(peer)

    def _heaviest(self, before_s: float) -> str | None:
        """The address that has most, of those with a connection that came so early."""
        late = (peer for peer in self._waiting if self._oldest_s(peer) <= before_s)
        return max(late, key=lambda peer: len(self._waiting[peer]), default=None)

    def _oldest_s(self, peer: str) -> float:
        return next(iter(self._waiting[peer].values()))

    def _pop(self, peer: str) -> C:
        oldest = next(iter(self._waiting[peer]))
        self.left(oldest, peer)
        return oldest
