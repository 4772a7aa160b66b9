"""Event time or processing time.  PyFlink: ``pyflink.datastream.time_domain``."""

from yarnflow.operators.functions.time import TimeDomain

__all__ = ["TimeDomain"]
