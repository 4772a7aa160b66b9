"""What is measured of one attempt of a job: Spark's part, and the driver's own processes."""

from __future__ import annotations

import os
import time
from typing import Any

from yarnflow.core.messages import MetricDump
from yarnflow.core.metrics import ScopeKind
from yarnflow.core.monitoring import declarations as m
from yarnflow.graph.job_graph import JobGraph
from yarnflow.process.resources.usage import LoadMeter, usage_of
from yarnflow.spark.elements.worker_runs import MeasureSink
from yarnflow.spark.metrics.measures import MeasureSums
from yarnflow.spark.metrics.sampler import JobSampler, Progress
from yarnflow.spark.metrics.status_store import StatusStore
from yarnflow.spark.metrics.vertices import JobPlaces


class AttemptMetrics:
    """Of one attempt.

    Parameters
    ----------
    context : SparkContext
    graph : JobGraph
    interval_ms : int
        Between two micro-batches; 0 = none, or not known.
    progress : Progress
        What queries say of themselves.
    jvm_pid : int
        Of the driver's JVM.
    """

    def __init__(
        self, context: Any, graph: JobGraph, interval_ms: int, progress: Progress, jvm_pid: int
    ) -> None:
        self._sums = MeasureSums(context)
        self._sampler = JobSampler(
            JobPlaces(graph), interval_ms, progress, StatusStore(context), self._sums.read, _now_ms()
        )
        self._jvm_pid = jvm_pid
        self._loads = LoadMeter(time.monotonic_ns), LoadMeter(time.monotonic_ns)

    @property
    def sink(self) -> MeasureSink:
        """Where tasks tell what they counted."""
        return self._sums.sink

    def sample(self, last: bool) -> tuple[MetricDump, ...]:
        """Measure; see :meth:`~yarnflow.runtime.driver.services.DriverBackend.metrics`."""
        return (*self._sampler.sample(_now_ms(), last), self._processes())

    def close(self) -> None:
        """Let go of what was counted."""
        self._sums.forget()

    def _processes(self) -> MetricDump:
        own, jvm = usage_of(os.getpid()), usage_of(self._jvm_pid)
        own_load, jvm_load = (meter.read(used.cpu_ns) for meter, used in zip(self._loads, (own, jvm)))
        counts = {
            m.PYTHON_MEMORY: own.memory_bytes,
            m.PYTHON_CPU_TIME: own.cpu_ns,
            m.PYTHON_THREADS: own.threads,
            m.PYTHON_DESCRIPTORS: own.descriptors,
            m.JVM_MEMORY: jvm.memory_bytes,
            m.JVM_CPU_TIME: jvm.cpu_ns,
            m.JVM_THREADS: jvm.threads,
            m.JVM_DESCRIPTORS: jvm.descriptors,
        }
        return MetricDump(
            ScopeKind.JOB,
            counts={declared.name: count for declared, count in counts.items()},
            rates={m.PYTHON_CPU_LOAD.name: own_load, m.JVM_CPU_LOAD.name: jvm_load},
        )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
