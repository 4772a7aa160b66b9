"""Exactly-once messages: what is decided, without Kafka and without Spark.

A micro-batch may be done more than once: a task again in another worker, in two workers at the same time,
the whole batch again by a new driver, with other functions, another order or another parallelism.  Its
messages must be readable once.

*A part* is what one transaction holds.  It has a transactional id of its own; opening a producer of that id
ends whatever earlier ones of it were doing: an open transaction is aborted, one that is being committed is
finished, and no earlier producer can commit any more.  Only then the part asks which batch it has committed
last, which was written down in that batch's own transaction, as an offset of a consumer group of the
part's.  A batch that is committed is left alone; a later one has left nothing readable and is written as
a whole; an earlier one is an error, for only the last batch of a job is ever done again: others went on from
the same checkpoint, and what they wrote are other messages.  So per part it does not matter how often, where
and how concurrently a batch is tried, nor when a worker dies: before the commit nothing of it is readable,
behind it the note is there.  A part without messages opens no producer, and so ends nothing: with functions
that do not answer the same twice, a worker of an earlier driver may still commit what it began.

*Several parts* commit one after the other.  When a driver dies in between, the batch is done again, and
then each part must get the very messages it got before, or those that changed parts would be there twice or
never.  A batch computed anew need not be the same: functions may look at a clock, calls may end in another
order.  So the messages of a batch with several parts are written to a file first, and a manifest says when
that is complete; a batch that has a manifest is never computed again, only its parts are written from the
file.  With one part there is nothing to divide: the batch is readable as a whole or not at all, and needs
no file.

*The number of parts* of a batch must be the same whenever it is done; it follows the sink's parallelism,
which may change between attempts.  The layout, written before it is used, says from which batch on there
are how many parts: a changed parallelism counts from the batch behind the one that may have been begun.

What a transaction may take is limited (``transaction.timeout.ms``): one that takes longer is aborted by the
broker, its commit fails, and the task is tried again.  Kafka forgets a group's offsets some days after they
were written (``offsets.retention.minutes``): a job that rests longer between a transaction's commit and its
batch's writes that one batch twice.  With fewer parts than before, nobody ends what a worker has left open
of one that is no more: until the transaction's timeout it holds back who reads committed messages.  A job
restored from a savepoint has another identity, and with it groups of its own: its batches are counted anew.

Flink counterpart: ``ExactlyOnceKafkaWriter`` and its committer, which commit a transaction after the
checkpoint that has its id; here the transaction decides, and the batch is committed behind it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from yarnflow.errors import JobFailed

#: of a part that has committed none
NO_BATCH: Final = -1


class PartProducer(Protocol):
    """Kafka's producer for one part; to have one means that no earlier one of the part can commit."""

    def committed_batch(self) -> int:
        """The last batch the part has committed; NO_BATCH = none."""

    def begin(self) -> None:
        """Begin a transaction."""

    def produce(self, message: Any) -> None:
        """Add a message to it."""

    def commit(self, batch_id: int) -> None:
        """Make its messages readable and note the batch: both or neither."""

    def abort(self) -> None:
        """Give the transaction up; never raises."""

    def close(self) -> None:
        """Let go of the connections."""


def write_part(
    group: str, open_producer: Callable[[], PartProducer], batch_id: int, messages: Iterable[Any]
) -> int:
    """Write one part of a batch, unless it is there.

    Parameters
    ----------
    group : str
        The consumer group that has the part's notes.
    open_producer : callable
        Opens the part's producer.
    batch_id : int
        The batch.
    messages : iterable
        Its messages in this part.

    Returns
    -------
    int
        Messages written; 0 where the part has been committed before.

    Raises
    ------
    JobFailed
        A later batch is: those are batches of another job.
    """
    producer = open_producer()
    try:
        committed = producer.committed_batch()
        if committed > batch_id:
            raise JobFailed(
                f"the Kafka sink has written batch {committed} already and is to write batch {batch_id}: "
                "another job has gone on from the same checkpoint; start from a savepoint, or delete the "
                f"consumer group {group} if the messages may come again"
            )
        if committed == batch_id:
            return 0
        count = 0
        try:
            for message in messages:
                if count == 0:
                    producer.begin()
                producer.produce(message)
                count += 1
            if count:
                producer.commit(batch_id)
        except BaseException:
            producer.abort()
            raise
        return count
    finally:
        producer.close()


@dataclass(frozen=True, slots=True)
class Layout:
    """How many parts the batches of a sink have, and where they are noted.

    Attributes
    ----------
    parts_from : tuple of (int, int)
        Batch, parts from there on; batches rise.
    note_topic : str
        The topic of which a part's batch is an offset; empty = none is known yet.
    """

    parts_from: tuple[tuple[int, int], ...] = ()
    note_topic: str = ""

    def parts(self, batch_id: int) -> int:
        """Parts of a batch."""
        return [parts for first, parts in self.parts_from if first <= batch_id][-1]

    def with_parallelism(self, parts: int, batch_id: int) -> Layout:
        """The layout for a driver whose first batch is ``batch_id``, which an earlier one may have begun."""
        if not self.parts_from:
            return replace(self, parts_from=((0, parts),))
        kept = tuple(entry for entry in self.parts_from if entry[0] <= batch_id)
        if kept[-1][1] != parts:
            kept = (*kept, (batch_id + 1, parts))
        return replace(self, parts_from=kept)

    def to_json(self) -> str:
        """The text of :meth:`from_json`."""
        return json.dumps({"parts_from": self.parts_from, "note_topic": self.note_topic})

    @classmethod
    def from_json(cls, text: str) -> Layout:
        """Read what :meth:`to_json` wrote."""
        found = json.loads(text)
        return cls(tuple((first, parts) for first, parts in found["parts_from"]), found["note_topic"])
