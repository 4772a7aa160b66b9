"""Input formats of Flink's batch API.  PyFlink: ``pyflink.common.io``."""

from yarnflow.graph.compatibility import differs


@differs("a base of yarnflow's own; Java's cannot be named")
class InputFormat:
    """What ``create_input`` reads."""
