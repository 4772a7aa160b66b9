"""What clients saw of a job over time, and a checker that says whether it may have been so.

A client asks all the time while faults come.  It may miss states, but those that it sees must lie on a way
through the table of the job's states, under one leader and from one leader to the next.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from integration.faults.ha_cluster import HaCluster
from tests.patience import PATIENCE
from yarnflow.cli.common import existing_cluster
from yarnflow.config.configuration import Configuration
from yarnflow.core.ids import JobId
from yarnflow.core.job.job import MACHINE
from yarnflow.core.states import GLOBALLY_TERMINAL, JobStatus
from yarnflow.errors import YarnflowError

#: between two questions
_PAUSE_S: Final = 0.3
#: what a request to cancel may lead to, also under the next leader, who begins with it again
_AFTER_CANCEL: Final = frozenset({JobStatus.INITIALIZING, JobStatus.CANCELLING, JobStatus.CANCELED})


@dataclass(frozen=True)
class Seen:
    """One answer of a leader."""

    epoch: int
    #: of the details; rises with every change under one leader
    version: int
    job_id: str
    status: JobStatus
    #: completed so far, over all leaders
    checkpoints: int = 0
    #: query → last batch of which it was told
    batches: Mapping[str, int] = field(default_factory=dict)


def reachable() -> dict[JobStatus, frozenset[JobStatus]]:
    """State → those that a job may be in later under the same leader, by the table; itself included."""
    found = {state: {state} for state in JobStatus}
    while True:
        before = sum(len(states) for states in found.values())
        for (source, _event), edge in MACHINE.table.items():
            for target in edge.targets:
                found[JobStatus(source.value)] |= found[JobStatus(target.value)]
        if sum(len(states) for states in found.values()) == before:
            return {state: frozenset(states) for state, states in found.items()}


_REACHABLE: Final = reachable()


def verdict(history: Sequence[Seen]) -> str:
    """What cannot have been; empty = all of it may.

    Parameters
    ----------
    history : sequence of Seen
        In the order in which one client got them.
    """
    problems = []
    for before, after in itertools.pairwise(history):
        if problem := _between(before, after):
            problems.append(f"{problem}: {before}, then {after}")
    asked_to_cancel = False
    for seen in history:
        asked_to_cancel |= seen.status is JobStatus.CANCELLING
        if asked_to_cancel and seen.status not in _AFTER_CANCEL:
            problems.append(f"a job that was being canceled went on: {seen}")
            break
    return "\n".join(problems)


def _between(before: Seen, after: Seen) -> str:
    if after.job_id != before.job_id:
        return "another job"
    if after.epoch < before.epoch:
        return "an earlier leader answered"
    if after.checkpoints < before.checkpoints:
        return "completed checkpoints are gone"
    for query, batch in before.batches.items():
        # a driver that has just started has not told anything
        if 0 <= after.batches.get(query, -1) < batch:
            return f"query {query} went back"
    if before.status in GLOBALLY_TERMINAL:
        return "" if after.status is before.status else "a result changed"
    if after.epoch > before.epoch:
        # the next leader begins with the job again, whatever state it was in
        return ""
    if after.version < before.version:
        return "an older state was told"
    if after.status not in _REACHABLE[before.status]:
        return "no way leads from the one state to the other"
    return ""


class Watcher:
    """Asks for a job's details until it is ended, in a thread of its own."""

    def __init__(self, cluster: HaCluster, job_id: str) -> None:
        self.history: list[Seen] = []
        #: questions without an answer, by the code of their error
        self.unanswered: dict[str, int] = {}
        options = [*cluster.client_options, "-Dexecution.target=remote"]
        self._options = dict(option.removeprefix("-D").split("=", 1) for option in options)
        self._job_id = JobId(job_id)
        self._over = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=f"watcher of job {job_id}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._watch()
        except BaseException as error:  # told in the thread of the test
            self._failure = error

    def _watch(self) -> None:
        configuration = Configuration.from_dict(self._options, "the test")
        with existing_cluster(configuration, self._job_id) as connection:
            cluster = connection.cluster_of(self._job_id)
            while not self._over.wait(_PAUSE_S):
                try:
                    before = cluster.followed()
                    gateway = cluster.gateway()
                    details = gateway.job_details(self._job_id)
                    checkpoints = gateway.job_checkpoints(self._job_id)
                    leader = cluster.followed()
                except YarnflowError as error:
                    self.unanswered[error.code] = self.unanswered.get(error.code, 0) + 1
                    continue
                # answers of two leaders are not comparable
                if leader is not None and leader == before:
                    self.history.append(
                        Seen(
                            leader.epoch,
                            details.version,
                            details.overview.job_id,
                            details.overview.status,
                            checkpoints.completed,
                            {query.query: query.batch_id for query in details.queries},
                        )
                    )

    def end(self, timeout_s: float | None = None) -> list[Seen]:
        """End it; returns what was seen.

        Raises
        ------
        AssertionError
            It hangs, so it may have seen nothing for long; the message says where.
        BaseException
            What it failed with.
        """
        self._over.set()
        limit_s = PATIENCE.condition_s if timeout_s is None else timeout_s
        self._thread.join(limit_s)
        if self._thread.is_alive():
            frame = sys._current_frames().get(self._thread.ident or 0)
            place = "".join(traceback.format_stack(frame)) if frame is not None else "(it has just ended)"
            last = self.history[-1] if self.history else "no answer at all"
            raise AssertionError(
                f"the {self._thread.name} hangs, {limit_s:.0f} s after it was to end; the last answer it "
                f"got: {last}; it is in\n{place}"
            )
        if self._failure is not None:
            raise self._failure
        return self.history


@contextmanager
def watched(cluster: HaCluster, job_id: str) -> Iterator[Watcher]:
    """Watch a job for the time of the block, and check what was seen at its end.

    Raises
    ------
    AssertionError
        Something was seen that cannot have been, or nothing at all.
    """
    watcher = Watcher(cluster, job_id)
    began = time.monotonic()
    try:
        yield watcher
    finally:
        history = watcher.end()
    took_s = time.monotonic() - began
    print(f"{len(history)} answers in {took_s:.0f} s; without one: {watcher.unanswered or 'never'}")
    told: list[tuple[int, str]] = []
    for seen in history:
        if not told or told[-1] != (seen.epoch, seen.status.name):
            told.append((seen.epoch, seen.status.name))
    print("seen: " + ", ".join(f"{status} ({epoch})" for epoch, status in told))
    assert history, f"no answer at all: {watcher.unanswered}"
    problems = verdict(history)
    assert problems == "", problems
