"""Which attempt of a job writes which micro-batch, and whether it may.

Decides that a batch which is in a database already is written no second time, and that an attempt which was
replaced by a later one writes no more.  What is in the database is told by
:mod:`yarnflow.operators.databases.batch_table`.  Flink counterpart: the fencing token of
``FencedRpcEndpoint``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from yarnflow.errors import DatabaseError, SinkTaken

#: where a database keeps the newest batch of each sink
TABLE: Final = "yarnflow_batches"
#: how somebody lets go of what is noted of a sink
_LET_GO: Final = f"delete the sink's row in table {TABLE}"
#: no batch yet
NO_BATCH: Final = -1
#: rows that only a function of the user's knows
UNKNOWN_ROWS: Final = -1


@dataclass(frozen=True, slots=True)
class RunToken:
    """One attempt of a job.  Of two of one job, the one with the larger ``(epoch, attempt)`` is the later."""

    job_id: str
    #: of the leader that deployed the attempt; rises with every leader
    epoch: int = 0
    #: rises with every deployment
    attempt: int = 1

    def batch(self, sink: str, batch_id: int = NO_BATCH) -> BatchToken:
        """The token of one batch of a sink."""
        return BatchToken(self.job_id, self.epoch, self.attempt, sink, batch_id)


@dataclass(frozen=True, slots=True)
class BatchToken:
    """One micro-batch on its way to a sink.

    The same batch has the same ``sink`` and ``batch_id`` however often it is done again, and another
    ``(epoch, attempt)`` when another driver does it again.
    """

    job_id: str
    #: of the leader that deployed the attempt; rises with every leader
    epoch: int
    #: rises with every deployment
    attempt: int
    #: the same as long as batches count on from the same state: over restarts, and in a job that goes on from
    #: a retained checkpoint; another one in a job that was started from a savepoint
    sink: str
    batch_id: int

    @property
    def run(self) -> RunToken:
        """Whose batch it is."""
        return RunToken(self.job_id, self.epoch, self.attempt)


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A sink's row."""

    run: RunToken
    batch_id: int = NO_BATCH
    written_rows: int = 0


def is_later(one: RunToken, other: RunToken) -> bool:
    """Whether an attempt comes after another of the same job; attempts of two jobs have no order."""
    return one.job_id == other.job_id and (one.epoch, one.attempt) > (other.epoch, other.attempt)


def takes_over(token: BatchToken, stored: StoredBatch, let_go: str = _LET_GO) -> bool:
    """Whether the run of ``token`` becomes the one that writes; False = it is already.

    Runs of two jobs have no order.  The later one goes on from a checkpoint of the earlier, which has ended.

    Raises
    ------
    SinkTaken
        A later run of the job writes.
    """
    mine, other = token.run, stored.run
    if mine == other:
        return False
    if is_later(other, mine):
        raise replaced(token, stored, let_go)
    return True


def is_written(token: BatchToken, stored: StoredBatch, let_go: str = _LET_GO) -> bool:
    """Whether the batch is in the database already.

    Parameters
    ----------
    let_go : str
        How somebody has the batch written all the same, for people.

    Raises
    ------
    DatabaseError
        Later ones are: these are batches of another job, or of this one before it was put back.
    """
    if token.batch_id < stored.batch_id:
        raise DatabaseError(
            f"sink {token.sink} has written batch {stored.batch_id} already (job {stored.run.job_id}) and "
            f"is to write batch {token.batch_id}: another job has gone on from the same checkpoint; start "
            f"from a savepoint, or {let_go} if the rows may come again"
        )
    return token.batch_id == stored.batch_id


def replaced(token: BatchToken, stored: StoredBatch, let_go: str = _LET_GO) -> SinkTaken:
    """What whoever may not write a sink any more is told."""
    mine, other = token.run, stored.run
    return SinkTaken(
        f"attempt {mine.attempt} (epoch {mine.epoch}) of job {mine.job_id} may not write sink {token.sink} "
        f"any more: attempt {other.attempt} (epoch {other.epoch}) of job {other.job_id} does; if there is "
        f"none, {let_go}"
    )
