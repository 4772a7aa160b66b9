"""What streaming queries say of themselves, collected for the driver's reports.

One listener per session.  It is called by the JVM for every batch, so it fetches one JSON text
per event instead of pyspark's objects, which take some hundred round trips each.  Never asks
Spark for anything by itself.  Flink counterpart: ``TaskIOMetricGroup``.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from yarnflow.core.checkpoint.messages import SourceProgress, StateOperatorProgress
from yarnflow.core.messages import QueryProgress

#: an offset over thousands of partitions does not go into a report every second
_MAX_OFFSET_CHARACTERS: Final = 16384

logger = logging.getLogger(__name__)


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
            self._queries[name] = replace(
                now,
                directory=directory,
                total_input_rows=before.total_input_rows + counted_input,
                total_output_rows=before.total_output_rows + counted_output,
            )
        self._changed()

    def terminated(self, query_id: str, run_id: str, exception: str) -> None:
        """A run of a query ended; ``exception`` is empty if in good order.

        Spark may tell of it after it told of the next run's start.
        """
        with self._lock:
            if exception and self._runs.get(query_id, run_id) == run_id:
                self._failures[query_id] = exception
        self._changed()

    def failures(self) -> dict[str, str]:
        """Query id → text of the failure, of those that have not been started again."""
        with self._lock:
            return dict(self._failures)

    def forget_failures(self) -> None:
        """A new attempt begins."""
        with self._lock:
            self._failures.clear()

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


def parse_progress(event: Mapping[str, Any], name: str, output_rows: int = -1) -> QueryProgress:
    """Spark's ``StreamingQueryProgress`` JSON → our value, without totals.

    Parameters
    ----------
    event : mapping
        The parsed JSON; absent and NaN-like entries count as 0.
    name : str
        The query's name.
    output_rows : int
        What the sinks counted themselves; used when Spark's own number is -1.
    """
    durations = event.get("durationMs") or {}
    operators = parse_operators(event)
    spark_rows = int((event.get("sink") or {}).get("numOutputRows", -1))
    return QueryProgress(
        query=name,
        batch_id=int(event["batchId"]),
        at_ms=_millis(event.get("timestamp", "")),
        batch_duration_ms=int(event.get("batchDuration", durations.get("triggerExecution", 0))),
        input_rows=int(event.get("numInputRows", 0)),
        output_rows=output_rows if spark_rows < 0 else spark_rows,
        input_rows_per_second=_number(event.get("inputRowsPerSecond")),
        processed_rows_per_second=_number(event.get("processedRowsPerSecond")),
        watermark_ms=_watermark((event.get("eventTime") or {}).get("watermark", "")),
        state_rows=sum(operator.rows for operator in operators),
        state_bytes=sum(operator.bytes for operator in operators),
        durations_ms={part: int(duration) for part, duration in durations.items()},
        sources=parse_sources(event),
        operators=operators,
    )


def parse_sources(event: Mapping[str, Any]) -> tuple[SourceProgress, ...]:
    """Sources of a progress event, in the order of Spark's offset log."""
    return tuple(
        SourceProgress(
            description=str(source.get("description", "")),
            start_offset=_offset(source.get("startOffset")),
            end_offset=_offset(source.get("endOffset")),
            latest_offset=_offset(source.get("latestOffset")),
            input_rows=int(source.get("numInputRows", 0)),
        )
        for source in event.get("sources") or ()
    )


def parse_operators(event: Mapping[str, Any]) -> tuple[StateOperatorProgress, ...]:
    """Stateful operators of a progress event."""
    return tuple(
        StateOperatorProgress(
            name=str(operator.get("operatorName", "")),
            rows=int(operator.get("numRowsTotal", 0)),
            bytes=int(operator.get("memoryUsedBytes", 0)),
            rows_updated=int(operator.get("numRowsUpdated", 0)),
            rows_removed=int(operator.get("numRowsRemoved", 0)),
            partitions=int(operator.get("numShufflePartitions", 0)),
        )
        for operator in event.get("stateOperators") or ()
    )


def _added(before: tuple[int, ...], now: QueryProgress) -> tuple[int, ...]:
    rows = tuple(source.input_rows for source in now.sources)
    return tuple(map(sum, zip(before, rows))) if len(before) == len(rows) else rows


def _offset(value: Any) -> str:
    """JSON text; Spark embeds an offset that is JSON and quotes one that is not."""
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return text if len(text) <= _MAX_OFFSET_CHARACTERS else ""


def _number(value: Any) -> float:
    number = float(value) if isinstance(value, (int, float)) else 0.0
    return number if number == number and number not in (float("inf"), float("-inf")) else 0.0


def _millis(text: str) -> int:
    try:
        return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)
    except ValueError:
        return -1


def _watermark(text: str) -> int:
    # Spark starts every watermark at the epoch, which means that there is none yet
    millis = _millis(text) if text else -1
    return millis if millis > 0 else -1


class _JavaListener:
    """Implements Spark's listener interface for Python; its methods are called by the JVM."""

    def __init__(self, collector: ProgressCollector) -> None:
        self._collector = collector

    def onQueryStarted(self, event: Any) -> None:
        self._collector.started(
            str(event.id().toString()), str(event.runId().toString()), event.name() or ""
        )

    def onQueryProgress(self, event: Any) -> None:
        try:
            self._collector.progressed(event.progress().json())
        except Exception:  # an odd report must not end Spark's listener thread
            logger.exception("Cannot read a progress report of Spark")

    def onQueryIdle(self, event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        failure = event.exception()
        self._collector.terminated(
            str(event.id().toString()),
            str(event.runId().toString()),
            failure.get() if failure.isDefined() else "",
        )

    class Java:
        implements = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]


def listen(spark: Any, collector: ProgressCollector) -> Callable[[], None]:
    """Have ``collector`` told of all queries of this session, until what is returned is called."""
    from pyspark import SparkContext
    from pyspark.java_gateway import ensure_callback_server_started

    gateway = SparkContext._gateway
    assert gateway is not None, "listen() before the session"
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    wrapper = gateway.jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(
        _JavaListener(collector)
    )
    streams = spark._jsparkSession.streams()
    streams.addListener(wrapper)

    def no_longer() -> None:
        streams.removeListener(wrapper)

    return no_longer
