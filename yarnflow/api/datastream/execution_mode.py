"""Whether a job is a stream or a batch.  PyFlink: ``pyflink.datastream.execution_mode``."""

from enum import Enum


class RuntimeExecutionMode(Enum):
    """Flink's ``execution.runtime-mode``."""

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
