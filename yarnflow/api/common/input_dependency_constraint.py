"""When Flink's batch scheduler starts an operator; Spark decides that itself."""

from enum import Enum


class InputDependencyConstraint(Enum):
    """Accepted and without effect."""

    ANY = 0
    ALL = 1
