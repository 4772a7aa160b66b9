"""yarnflow: Flink's operations for PySpark jobs.

The public programming interface lives in :mod:`yarnflow.api`; everything else is
the runtime behind ``yarnflow submit``.
"""

__version__ = "0.2.0"
