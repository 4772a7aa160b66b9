"""Batches of a job's queries around a fault: when they were committed, and what was done twice.

Two witnesses: the progress the queries report, which shows only the newest batch each time, and the
file times of Spark's own logs below the query's checkpoint directory, which show all of the last
hundred.  The second is believed where it can be read.  Pure.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from yarnflow.core.messages import QueryProgress

#: commits before the fault that tell the usual gap
_USUAL: Final = 20


@dataclass(frozen=True, slots=True)
class Batches:
    """One query's logs: batch → time of its file."""

    #: ``offsets/``: what the batch was to read was written down, and so it was begun
    planned_ms: Mapping[int, int]
    #: ``commits/``
    committed_ms: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Gaps:
    """Times between neighbouring commits of one query, over all queries; -1 = not known."""

    #: median before the fault
    usual_ms: int = -1
    #: largest from the last commit before the fault on
    largest_ms: int = -1
    #: False = batches between two reports were not seen, so the largest gap is an upper bound
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Replay:
    """Records that were processed again."""

    #: at most so many; None = not known
    records: int | None
    #: what the number is, in words
    basis: str
    #: how the offsets after the fault relate to those committed before
    offsets: str = ""


@dataclass
class _Query:
    #: batch → when it was committed, by reports
    reported_ms: dict[int, int] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    #: batch → per source (start, end)
    offsets: dict[int, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    logs: Batches | None = None
    #: newest batch when watching began
    first_batch: int = -1

    @property
    def commits(self) -> dict[int, int]:
        found = dict(self.reported_ms)
        if self.logs is not None:
            found.update(self.logs.committed_ms)
        return dict(sorted(found.items()))


class CommitTrack:
    """All queries of one job."""

    def __init__(self) -> None:
        self._queries: dict[str, _Query] = {}
        self._fault_ms = -1
        #: committed before the fault, and so expected to commit after it
        self._active: tuple[str, ...] = ()

    def reported(self, progress: QueryProgress) -> None:
        """What a query says of its newest batch."""
        if progress.batch_id < 0:
            return
        query = self._queries.setdefault(progress.query, _Query(first_batch=progress.batch_id))
        if progress.batch_id in query.reported_ms:
            return  # an idle query repeats its last batch
        # the progress has the time at which the batch began
        query.reported_ms[progress.batch_id] = progress.at_ms + progress.batch_duration_ms
        query.rows[progress.batch_id] = progress.input_rows
        query.offsets[progress.batch_id] = tuple((s.start_offset, s.end_offset) for s in progress.sources)

    def logged(self, name: str, batches: Batches) -> None:
        """The logs of a query; what an earlier look saw and is gone now stays known."""
        # all it committed before it was watched is no sign of life
        newest = max(batches.committed_ms, default=-1)
        query = self._queries.setdefault(name, _Query(first_batch=newest))
        before = query.logs or Batches({}, {})
        query.logs = Batches(
            {**batches.planned_ms, **before.planned_ms}, {**batches.committed_ms, **before.committed_ms}
        )

    def fault(self, at_ms: int) -> None:
        """It happened; the queries that have committed while they were watched are active."""
        self._fault_ms = at_ms
        self._active = self.active

    @property
    def active(self) -> tuple[str, ...]:
        """Queries that have committed since watching began."""
        return tuple(
            name
            for name, query in self._queries.items()
            if max(query.commits, default=-1) > query.first_batch
        )

    @property
    def watched(self) -> int:
        """Batches committed since watching began, of the slowest query that commits at all."""
        queries = [self._queries[name] for name in self.active]
        return min((max(query.commits) - query.first_batch for query in queries), default=0)

    def all_since(self, at_ms: int) -> bool:
        """Every active query has committed after a time."""
        return bool(self._active) and all(
            any(time > at_ms for time in self._queries[name].commits.values()) for name in self._active
        )

    def first_after(self) -> dict[str, int]:
        """Active query → its first batch committed after the fault."""
        return {
            name: next(batch for batch, time in self._queries[name].commits.items() if time > self._fault_ms)
            for name in self._active
            if any(time > self._fault_ms for time in self._queries[name].commits.values())
        }

    def first_after_ms(self) -> int | None:
        """When every active query had committed after the fault; None = not yet."""
        first = self.first_after()
        if not first or len(first) < len(self._active):
            return None
        return max(self._queries[name].commits[batch] for name, batch in first.items())

    def gaps(self) -> Gaps:
        """Before and around the fault."""
        usual: list[float] = []
        largest = -1
        exact = True
        for name in self._active:
            commits = list(self._queries[name].commits.items())
            before = [commit for commit in commits if commit[1] <= self._fault_ms]
            after = before[-1:] + [commit for commit in commits if commit[1] > self._fault_ms]
            for (batch, time), (next_batch, next_time) in pairwise(before[-_USUAL:]):
                usual.append((next_time - time) / (next_batch - batch))
            for (batch, time), (next_batch, next_time) in pairwise(after):
                largest = max(largest, next_time - time)
                exact = exact and next_batch == batch + 1
        return Gaps(
            usual_ms=round(statistics.median(usual)) if usual else -1,
            largest_ms=largest,
            exact=exact and largest >= 0,
        )

    # --- for the estimate of what was done twice ---

    def interrupted(self) -> dict[str, int]:
        """Active query → the batch that was next at the fault."""
        found = {}
        for name in self._active:
            commits = self._queries[name].commits.items()
            found[name] = max((batch for batch, time in commits if time <= self._fault_ms), default=-1) + 1
        return found

    def was_begun(self, name: str, batch: int) -> bool | None:
        """Whether a batch was begun at the fault; None = not known."""
        logs = self._queries[name].logs
        if logs is None or not logs.planned_ms:
            return None
        return logs.planned_ms.get(batch, self._fault_ms + 1) <= self._fault_ms

    def rows_of(self, name: str, batch: int) -> int | None:
        """Records of a batch, where a report told."""
        return self._queries[name].rows.get(batch)

    def usual_rows(self, name: str) -> int | None:
        """Median of the batches that were reported."""
        rows = list(self._queries[name].rows.values())
        return round(statistics.median(rows)) if rows else None

    def went_back(self, name: str, batch: int) -> int | None:
        """Records between where a batch begins and where the one before it ended; None = not comparable."""
        offsets = self._queries[name].offsets
        if batch not in offsets or batch - 1 not in offsets or not offsets[batch]:
            return None
        distances = [
            offset_distance(ended[1], begun[0])
            for ended, begun in zip(offsets[batch - 1], offsets[batch], strict=False)
        ]
        known = [distance for distance in distances if distance is not None]
        return sum(known) if len(known) == len(distances) else None


def estimate_replay(commits: CommitTrack, *, restarted: bool, tasks_lost: bool) -> Replay:
    """What was processed again because of the fault.

    Committed batches never are: every start goes on after the last of them.  What was begun and not
    committed is done again, with the same records.

    Parameters
    ----------
    restarted : bool
        The queries were started again.
    tasks_lost : bool
        Executors were lost, whose tasks of the running batch Spark does again.
    """
    if not restarted and not tasks_lost:
        return Replay(0, "nothing was started again, so no record was processed twice")
    total = 0
    usual = False
    backwards: list[int | None] = []
    for name, batch in commits.interrupted().items():
        backwards.append(commits.went_back(name, batch))
        total += max(0, backwards[-1] or 0)
        if commits.was_begun(name, batch) is False:
            continue
        rows = commits.rows_of(name, batch)
        if rows is None:
            usual, rows = True, commits.usual_rows(name)
        if rows is None:
            return Replay(None, "no query has said how many records its batches have")
        total += rows
    what = "the batches under way at the fault" if restarted else "the tasks of lost executors"
    basis = f"upper bound: all records of {what}; how many of them had been processed is not known"
    if not restarted:
        basis = (
            "upper bound: all records of the batches under way at the fault, of which only the tasks of lost "
            "executors are done again"
        )
    if total == 0:
        basis = "no batch was under way at the fault"
    elif usual:
        basis += "; for batches that were not reported the usual number is taken"
    return Replay(total, basis, _offsets_text(backwards))


def _offsets_text(backwards: list[int | None]) -> str:
    if not backwards or any(distance is None for distance in backwards):
        return "not comparable"
    back = sum(max(0, distance or 0) for distance in backwards)
    if back:
        return f"{back} records before the committed ones were read again"
    return "went on exactly where the last commit ended"


def offset_distance(committed: str, begun: str) -> int | None:
    """How far ``begun`` is behind ``committed``; 0 = not at all, None = they cannot be compared.

    Offsets are JSON as Spark writes it: a number, or objects with numbers in them, such as Kafka's
    topic → partition → offset.
    """
    if committed == begun:
        return 0
    try:
        was, now = _numbers(json.loads(committed)), _numbers(json.loads(begun))
    except ValueError:
        return None
    if was is None or now is None or set(was) != set(now):
        return None
    return sum(max(0, was[key] - now[key]) for key in was)


def _numbers(value: Any, path: str = "") -> dict[str, int] | None:
    if isinstance(value, bool) or not isinstance(value, (int, dict)):
        return None
    if isinstance(value, int):
        return {path: value}
    found: dict[str, int] = {}
    for key, inner in value.items():
        numbers = _numbers(inner, f"{path}/{key}")
        if numbers is None:
            return None
        found.update(numbers)
    return found
