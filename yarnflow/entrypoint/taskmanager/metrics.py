"""What a TaskManager measures of its processes: itself, its executors' JVMs, and Spark's Python workers."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence

from yarnflow.core.messages import MetricDump
from yarnflow.core.metrics import ScopeKind
from yarnflow.core.monitoring import declarations as m
from yarnflow.process.resources.usage import LoadMeter, below, max_descriptors, usage_of, usage_of_all


class TaskManagerMetrics:
    """Measures in a thread of its own, as a look at all processes may take some milliseconds.

    Parameters
    ----------
    executor_pids : callable
        The JVMs that run now.
    interval_ms : int
        Between two measurements; 0 = there are none.
    """

    def __init__(self, executor_pids: Callable[[], Sequence[int]], interval_ms: int) -> None:
        self._executor_pids = executor_pids
        self._interval_ms = interval_ms
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._news: tuple[MetricDump, ...] = ()
        self._own, self._jvms, self._workers = (LoadMeter(time.monotonic_ns) for _ in range(3))

    def start(self) -> None:
        """Measure from now on."""
        if self._interval_ms:
            threading.Thread(target=self._run, name="taskmanager-metrics", daemon=True).start()

    def stop(self) -> None:
        """Measure no more."""
        self._stopped.set()

    def take(self) -> tuple[MetricDump, ...]:
        """The newest measurement, once."""
        with self._lock:
            news, self._news = self._news, ()
            return news

    def _run(self) -> None:
        while True:
            found = (self.measure(),)
            with self._lock:
                self._news = found
            if self._stopped.wait(self._interval_ms / 1000):
                return

    def measure(self) -> MetricDump:
        """All there is now."""
        pids = self._executor_pids()
        own, jvms = usage_of(os.getpid()), usage_of_all(pids)
        workers = usage_of_all(below(*pids))
        counts = {
            m.PYTHON_MEMORY: own.memory_bytes,
            m.PYTHON_CPU_TIME: own.cpu_ns,
            m.PYTHON_THREADS: own.threads,
            m.PYTHON_DESCRIPTORS: own.descriptors,
            m.PYTHON_MAX_DESCRIPTORS: max_descriptors(),
            m.JVM_COUNT: jvms.processes,
            m.JVM_MEMORY: jvms.memory_bytes,
            m.JVM_CPU_TIME: jvms.cpu_ns,
            m.JVM_THREADS: jvms.threads,
            m.JVM_DESCRIPTORS: jvms.descriptors,
            m.WORKERS: workers.processes,
            m.WORKERS_MEMORY: workers.memory_bytes,
        }
        rates = {
            m.PYTHON_CPU_LOAD: self._own.read(own.cpu_ns),
            m.JVM_CPU_LOAD: self._jvms.read(jvms.cpu_ns),
            m.WORKERS_CPU_LOAD: self._workers.read(workers.cpu_ns),
        }
        return MetricDump(
            ScopeKind.TASK_MANAGER,
            counts={declared.name: count for declared, count in counts.items()},
            rates={declared.name: rate for declared, rate in rates.items()},
        )
