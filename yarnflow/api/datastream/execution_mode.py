"""Whether a job is a stream or a batch.  PyFlink: ``pyflink.datastream.execution_mode``."""

from enum import Enum


class RuntimeExecutionMode(Enum):
    """STREAMING is what there is."""

    STREAMING = 0
    BATCH = 1
    AUTOMATIC = 2
