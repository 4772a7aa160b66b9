"""What functions measure.  PyFlink: ``pyflink.metrics``."""

from yarnflow.operators.functions.metrics import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"]
