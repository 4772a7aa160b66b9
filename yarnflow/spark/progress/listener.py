"""Spark's listener of streaming queries, for Python.

One listener per session.  It is called by the JVM for every batch, so it fetches one JSON text
per event instead of pyspark's objects, which take some hundred round trips each.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from yarnflow.spark.java_classes import java_class
from yarnflow.spark.progress.collector import ProgressCollector

logger = logging.getLogger(__name__)


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
        self._collector.idled(
            str(event.id().toString()), str(event.runId().toString()), event.timestamp()
        )

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
    listener = "org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper"
    wrapper = java_class(gateway, listener)(_JavaListener(collector))
    streams = spark._jsparkSession.streams()
    streams.addListener(wrapper)

    def no_longer() -> None:
        streams.removeListener(wrapper)

    return no_longer
