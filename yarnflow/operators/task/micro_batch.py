"""The micro-batch that a level works on, as its tasks are told of it.

Whoever runs levels knows it before the first task, and tells all tasks the same, also those that do the
batch again after a failure: what a batch computes, and when its timers fire, must not differ then.
Flink has no counterpart: its tasks read the machine's clock.
"""

from __future__ import annotations

from typing import NamedTuple


class MicroBatch(NamedTuple):
    """One micro-batch."""

    #: counts from 0
    number: int = 0
    #: processing time of all that happens in it, ms since the epoch
    time_ms: int = 0
    #: when the run of the job began that planned it: what state says of another run's silence is over
    run_ms: int = 0
    #: it has all elements there will ever be: the job runs as a batch
    whole: bool = False
