"""What becomes of checkpoints.  PyFlink: ``pyflink.datastream.externalized_checkpoint_retention``."""

from enum import Enum


class ExternalizedCheckpointRetention(Enum):
    """When checkpoints of a job that ended are removed."""

    DELETE_ON_CANCELLATION = 0
    RETAIN_ON_CANCELLATION = 1
    NO_EXTERNALIZED_CHECKPOINTS = 2
