"""How executors come to a driver."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

#: in an executor's environment: task threads of each of its slots, if it is more than one
TASK_THREADS_VARIABLE: Final = "YARNFLOW_TASK_THREADS_PER_SLOT"
#: in the environment of an executor that has some of a TaskManager's slots: MiB for its Python workers
PYTHON_MEMORY_VARIABLE: Final = "YARNFLOW_PYTHON_MEMORY_MIB"
#: Spark limits the *address space* of a Python worker; libraries alone take half of this
SMALLEST_WORKER_LIMIT_MIB: Final = 1024


@dataclass(frozen=True, slots=True)
class ExecutorAttachment:
    """What an executor must be told to dial in to a driver; never secrets."""

    #: ``spark://CoarseGrainedScheduler@host:port``
    driver_url: str
    #: Spark's application id
    app_id: str
    java_options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
