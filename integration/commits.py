"""Commits of streaming queries, as Spark's own files on HDFS show them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hdfs import InsecureClient
from hdfs.util import HdfsError

from integration.conftest import wait_until


@dataclass(frozen=True)
class Commit:
    """One committed batch."""

    query: str
    batch_id: int
    #: modification time of the file, by HDFS's clock
    at_ms: int


#: all commits that are still there, by time
Look = Callable[[], list[Commit]]


def commits_below(client: InsecureClient, root: str) -> list[Commit]:
    """Of all checkpoint directories ``query-*`` in a directory."""
    found = []
    try:
        # while state is brought there, it is beside its place: query-….restoring-…
        queries = [name for name in client.list(root) if name.startswith("query-") and "." not in name]
    except HdfsError:
        return []
    for query in queries:
        try:
            entries = client.list(f"{root}/{query}/commits", status=True)
        except HdfsError:
            continue
        found += [
            Commit(query, int(name), int(status["modificationTime"]))
            for name, status in entries
            if name.isdigit()
        ]
    return sorted(found, key=lambda commit: commit.at_ms)


def gaps_s(found: Sequence[Commit], since_ms: int) -> list[float]:
    """Seconds between neighbouring commits of the same query from a time on."""
    gaps = []
    for query in {commit.query for commit in found}:
        times = [commit.at_ms for commit in found if commit.query == query]
        gaps += [(b - a) / 1000 for a, b in itertools.pairwise(times) if b >= since_ms]
    return gaps


def newest(found: Sequence[Commit]) -> dict[str, int]:
    """Query → its newest batch."""
    return {commit.query: commit.batch_id for commit in sorted(found, key=lambda commit: commit.batch_id)}


def await_more(look: Look, more: int, queries: int) -> None:
    """Until every one of so many queries has so many more commits."""

    def all_queries() -> dict[str, int] | None:
        found = newest(look())
        return found if len(found) == queries else None

    before = wait_until(all_queries, "the first commits")
    assert before is not None

    def reached() -> bool:
        now = newest(look())
        return all(now.get(query, -1) >= batch + more for query, batch in before.items())

    wait_until(reached, f"{more} more commits")


def first_after_s(found: Sequence[Commit], had: dict[str, int], fault_ms: int, dead_ms: int) -> float | None:
    """Seconds from a fault until each query had committed another batch; None = not yet.

    Parameters
    ----------
    found : sequence of Commit
    had : dict
        Query → newest batch before the fault.
    fault_ms, dead_ms : int
        When the victim was hit, and when it was certainly dead: until then it may have committed.
    """
    times: dict[str, int] = {}
    for commit in found:
        if commit.batch_id > had.get(commit.query, -1) and commit.at_ms > dead_ms:
            times[commit.query] = min(commit.at_ms, times.get(commit.query, commit.at_ms))
    if times.keys() != had.keys():
        return None
    return (max(times.values()) - fault_ms) / 1000
