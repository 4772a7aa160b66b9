"""Which messages of a queue are new, and when they are acknowledged; knows no RabbitMQ and no files.

Messages wait until Spark plans a micro-batch; then they become a *part*, which has a number and is written to
the job's checkpoint directory before Spark hears of it, so that a batch that is done again has the same
messages.  A part is acknowledged when the batch that has it is committed, up to the tag of the last message
that came before it was closed.

A connection that ends takes its tags with it: the broker delivers again whatever was not acknowledged, also
what is in a part already.  With correlation ids such a message is known and left out: the ids of all parts
that were not acknowledged are kept, over crashes as well, until the message has come back and was
acknowledged.  Its acknowledgement waits for the batches of all parts before it, so for its own.  Without ids
it is read twice.

Flink counterpart: ``MultipleIdsMessageAcknowledgingSourceBase``, which forgets the ids with the next
checkpoint, whether the messages have come back or not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

#: ids of messages that may come back, the oldest are forgotten beyond it: a message that was acknowledged in
#: the moment of a crash never comes
MAX_RETURNING: Final = 500_000
#: ids of messages that were acknowledged last: a broker that dies may have the acknowledgement in memory
#: alone, and delivers them again
MAX_ACKNOWLEDGED: Final = 50_000


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it was delivered."""

    tag: int
    body: bytes
    #: empty = it has none
    correlation_id: str = ""


@dataclass(slots=True)
class _Part:
    """What is acknowledged together."""

    number: int
    tag: int
    ids: list[str]
    #: ids of messages that came again before it was closed
    came_back: list[str]


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What to tell the broker, all tags up to one."""

    tag: int
    ids: tuple[str, ...] = field(repr=False)
    came_back: tuple[str, ...] = field(repr=False)


class Deliveries:
    """The messages of a queue that are not acknowledged yet.

    Parameters
    ----------
    last_part : int
        Number of the last part that Spark has planned before; 0 = none.
    use_ids : bool
        Messages are known by their correlation ids.
    returning : mapping
        Ids of messages that were read before and may be delivered again, the oldest first, with the parts
        they are in.  Those in parts behind ``last_part`` are not read yet: no batch has them.
    """

    def __init__(
        self, last_part: int, use_ids: bool = False, returning: Mapping[str, int] | None = None
    ) -> None:
        self.last_part = last_part
        self._use_ids = use_ids
        known = returning or {}
        self._returning = {found: part for found, part in known.items() if part <= last_part}
        self._known: set[str] = set(self._returning)
        self._acknowledged: deque[str] = deque()
        self._waiting: list[Message] = []
        self._came_back: list[str] = []
        #: of the last message that came, and of the last one before a part was closed
        self._tag = self._closed_tag = 0
        self._parts: deque[_Part] = deque()
        self.waiting_bytes = 0

    @property
    def waiting(self) -> Sequence[Message]:
        """Messages that are in no part yet: the next part."""
        return self._waiting

    @property
    def returning(self) -> dict[str, int]:
        """What is to be kept over a crash."""
        return dict(self._returning)

    @property
    def unacknowledged(self) -> bool:
        """Whether there are parts to be acknowledged."""
        return bool(self._parts)

    def receive(self, message: Message) -> bool:
        """Take a message; False = it was read before, and is only to be acknowledged."""
        self._tag = message.tag
        found = message.correlation_id
        if self._use_ids and found:
            if found in self._known:
                self._came_back.append(found)
                return False
            self._known.add(found)
        self._waiting.append(message)
        self.waiting_bytes += len(message.body)
        return True

    def close_part(self) -> None:
        """Make part ``last_part + 1`` of what waits, or none if nothing does."""
        if self._waiting:
            self.last_part += 1
        if self._tag > self._closed_tag:
            # what came back alone waits for the part before it
            self._closed_tag = self._tag
            ids = [message.correlation_id for message in self._waiting if message.correlation_id]
            self._parts.append(_Part(self.last_part, self._tag, ids, self._came_back))
        self._waiting, self._came_back, self.waiting_bytes = [], [], 0

    def due(self, committed: int) -> Acknowledgement | None:
        """What can be acknowledged now that part ``committed`` and all before it are; None = nothing."""
        done = [part for part in self._parts if part.number <= committed]
        if not done:
            return None
        return Acknowledgement(
            done[-1].tag,
            tuple(found for part in done for found in part.ids),
            tuple(found for part in done for found in part.came_back),
        )

    def acknowledged(self, done: Acknowledgement) -> None:
        """The broker has taken it: these messages do not come again, unless it dies."""
        while self._parts and self._parts[0].tag <= done.tag:
            self._parts.popleft()
        if self._use_ids:
            for found in done.came_back:
                self._returning.pop(found, None)
            self._acknowledged.extend((*done.ids, *done.came_back))
            while len(self._acknowledged) > MAX_ACKNOWLEDGED:
                self._known.discard(self._acknowledged.popleft())

    def connection_lost(self) -> None:
        """Whatever is not acknowledged is delivered again, by other tags."""
        if self._use_ids:
            self._known.difference_update(m.correlation_id for m in self._waiting)
            # no part that is still to be planned has them
            self._returning.update(dict.fromkeys(self._acknowledged, 0))
            self._acknowledged.clear()
            for part in self._parts:
                self._returning.update(dict.fromkeys(part.ids, part.number))
            while len(self._returning) > MAX_RETURNING:
                oldest = next(iter(self._returning))
                del self._returning[oldest]
                self._known.discard(oldest)
        self._parts.clear()
        self._waiting, self._came_back, self.waiting_bytes = [], [], 0
        self._tag = self._closed_tag = 0
