"""What the JobManager measures of itself."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from typing import Final

from yarnflow.core.metrics import MetricValue
from yarnflow.core.monitoring import declarations as m
from yarnflow.process.resources.usage import LoadMeter, max_descriptors, usage_of

#: looks that follow each other sooner would each be of a moment
_SHORTEST_LOOK_S: Final = 1.0


class JobManagerProcess:
    """This process, read when somebody asks; any thread."""

    def __init__(self) -> None:
        self._load = LoadMeter(time.monotonic_ns)
        self._lock = threading.Lock()
        self._looked_s = float("-inf")
        self._found: dict[str, MetricValue] = {}

    def metrics(self) -> Mapping[str, MetricValue]:
        """Name → value."""
        with self._lock:
            now_s = time.monotonic()
            if now_s - self._looked_s >= _SHORTEST_LOOK_S:
                self._looked_s, self._found = now_s, self._read()
            return self._found

    def _read(self) -> dict[str, MetricValue]:
        used = usage_of(os.getpid())
        return {
            m.PYTHON_MEMORY.name: used.memory_bytes,
            m.PYTHON_CPU_TIME.name: used.cpu_ns,
            m.PYTHON_CPU_LOAD.name: self._load.read(used.cpu_ns),
            m.PYTHON_THREADS.name: used.threads,
            m.PYTHON_DESCRIPTORS.name: used.descriptors,
            m.PYTHON_MAX_DESCRIPTORS.name: max_descriptors(),
        }
