"""What a checkpoint promises.  PyFlink: ``pyflink.datastream.checkpointing_mode``."""

from enum import Enum


class CheckpointingMode(Enum):
    """State is always exactly-once."""

    EXACTLY_ONCE = 0
    AT_LEAST_ONCE = 1
