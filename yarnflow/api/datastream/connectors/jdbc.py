"""Databases by JDBC: names only.  PyFlink: ``pyflink.datastream.connectors.jdbc``."""

from typing import Any, Final

from yarnflow.graph.compatibility import refused_class

_WHY: Final = "there is no JDBC sink"
_USE: Final = "foreach_batch(lambda frame, batch: frame.write.jdbc(…))"

JdbcConnectionOptions: Any = refused_class("JdbcConnectionOptions", _WHY, _USE)
JdbcExecutionOptions: Any = refused_class("JdbcExecutionOptions", _WHY, _USE)
JdbcSink: Any = refused_class("JdbcSink", _WHY, _USE)
