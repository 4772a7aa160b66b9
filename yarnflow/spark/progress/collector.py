"""What streaming queries say of themselves, collected for the driver's reports.

Never asks Spark for anything by itself, but where an idle query is.
Flink counterpart: ``TaskIOMetricGroup``.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from yarnflow.core.messages import QueryProgress
from yarnflow.spark.progress.events import millis, parse_progress
from yarnflow.spark.progress.idleness import Idleness


class ProgressCollector:
    """The latest progress of each query, by name.  Thread-safe.

    Parameters
    ----------
    on_change : callable, optional
        Called after every batch, from Spark's listener thread; must return at once.
    output_rows : callable, optional
        Query name → rows its sinks wrote in the last batch, where Spark does not know.
    """

    def __init__(
        self,
        on_change: Callable[[], None] | None = None,
        output_rows: Callable[[], Mapping[str, int]] | None = None,
    ) -> None:
        #: of the attempt that runs
        self.idleness: Final = Idleness()
        self._lock = threading.Lock()
        self._on_change = on_change
        self._output_rows = output_rows
        self._directory_of: Callable[[str, str], str] | None = None
        self._directories: dict[str, str] = {}
        self._queries: dict[str, QueryProgress] = {}
        self._names: dict[str, str] = {}
        #: (run id, batch id) seen last, per query: an idle query repeats its last batch
        self._last_batch: dict[str, tuple[str, int]] = {}
        #: query id → the run that started last
        self._runs: dict[str, str] = {}
        #: query id → message of that run's failure
        self._failures: dict[str, str] = {}
        #: query → rows that it has read of each source, in the order of Spark's offset log
        self._source_rows: dict[str, tuple[int, ...]] = {}
        #: query → when it committed a batch last
        self._committed_ms: dict[str, int] = {}

    def use_output_rows(self, output_rows: Callable[[], Mapping[str, int]] | None) -> None:
        """Ask this for rows written from now on."""
        self._output_rows = output_rows

    def use_directories(self, directory_of: Callable[[str, str], str] | None) -> None:
        """Ask this once per query for its checkpoint directory: Spark's id of it, its name → URI."""
        with self._lock:
            self._directory_of = directory_of
            self._directories.clear()

    def started(self, query_id: str, run_id: str, name: str) -> None:
        """A query started, maybe again."""
        with self._lock:
            self._runs[query_id] = run_id
            self._names[query_id] = name or f"query-{query_id[:8]}"
            self._failures.pop(query_id, None)
            self._queries.setdefault(self._names[query_id], QueryProgress(self._names[query_id]))
            name = self._names[query_id]
        self.idleness.started(query_id, run_id, name)
        self._changed()

    def progressed(self, text: str) -> None:
        """A batch ended, or nothing happened for a while; ``text`` is Spark's JSON."""
        event = json.loads(text)
        directory = self._directory(event["id"], event.get("name") or "")
        with self._lock:
            name = event.get("name") or self._names.get(event["id"]) or f"query-{event['id'][:8]}"
            before = self._queries.get(name, QueryProgress(name))
            batch = (event["runId"], int(event["batchId"]))
            repeated = self._last_batch.get(name) == batch
            self._last_batch[name] = batch
            outputs = self._output_rows() if self._output_rows is not None else {}
            now = parse_progress(event, name, outputs.get(name, -1))
            if repeated:
                # idle: only the rates, the watermark and the state are news
                now = replace(now, input_rows=before.input_rows, output_rows=before.output_rows,
                              at_ms=before.at_ms, batch_duration_ms=before.batch_duration_ms,
                              durations_ms=before.durations_ms)  # fmt: skip
                counted_input = counted_output = 0
            else:
                counted_input, counted_output = now.input_rows, max(0, now.output_rows)
                self._committed_ms[name] = now.at_ms + now.batch_duration_ms
                self._source_rows[name] = _added(self._source_rows.get(name, ()), now)
                self.idleness.committed(event["id"], event["runId"])
            self._queries[name] = replace(
                now,
                directory=directory,
                total_input_rows=before.total_input_rows + counted_input,
                total_output_rows=before.total_output_rows + counted_output,
            )
        self._changed()

    def idled(self, query_id: str, run_id: str, at: str) -> None:
        """A query had nothing to do at a time (ISO 8601)."""
        self.idleness.idled(query_id, run_id, max(0, int(time.time() * 1000) - millis(at)))

    def terminated(self, query_id: str, run_id: str, exception: str) -> None:
        """A run of a query ended; ``exception`` is empty if in good order.

        Spark may tell of it after it told of the next run's start.
        """
        with self._lock:
            if exception and self._runs.get(query_id, run_id) == run_id:
                self._failures[query_id] = exception
        if not exception:
            self.idleness.ended(query_id, run_id)
        self._changed()

    def failures(self) -> dict[str, str]:
        """Query id → text of the failure, of those that have not been started again."""
        with self._lock:
            return dict(self._failures)

    def new_attempt(self) -> None:
        """All queries are to be started again."""
        with self._lock:
            self._failures.clear()
        self.idleness.new_attempt()

    def snapshot(self) -> tuple[QueryProgress, ...]:
        """All queries, in the order they first started."""
        with self._lock:
            return tuple(self._queries.values())

    def source_rows(self) -> dict[str, tuple[int, ...]]:
        """Query → rows that it has read of each source, as :attr:`QueryProgress.total_input_rows`."""
        with self._lock:
            return dict(self._source_rows)

    def committed_ms(self) -> dict[str, int]:
        """Query → when it committed a batch last; those without a batch are left out."""
        with self._lock:
            return dict(self._committed_ms)

    def names(self) -> dict[str, str]:
        """Spark's id of a query → its name."""
        with self._lock:
            return dict(self._names)

    def _directory(self, query_id: str, name: str) -> str:
        with self._lock:
            known, ask = self._directories.get(query_id, ""), self._directory_of
        if known or ask is None:
            return known
        # outside the lock: the answer may have to come from the JVM
        found = ask(query_id, name)
        with self._lock:
            if found and ask is self._directory_of:
                self._directories[query_id] = found
        return found

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change()


def _added(before: tuple[int, ...], now: QueryProgress) -> tuple[int, ...]:
    rows = tuple(source.input_rows for source in now.sources)
    return tuple(map(sum, zip(before, rows))) if len(before) == len(rows) else rows
