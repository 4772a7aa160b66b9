"""Cassandra: names only.  PyFlink: ``pyflink.datastream.connectors.cassandra``."""

from typing import Any, Final

from yarnflow.graph.compatibility import refused_class

_WHY: Final = "Spark has no Cassandra connector of its own"
_USE: Final = "foreach_batch(…) with a connector of Cassandra's own"

CassandraCommitter: Any = refused_class("CassandraCommitter", _WHY, _USE)
CassandraFailureHandler: Any = refused_class("CassandraFailureHandler", _WHY, _USE)
CassandraSink: Any = refused_class("CassandraSink", _WHY, _USE)
ClusterBuilder: Any = refused_class("ClusterBuilder", _WHY, _USE)
ConsistencyLevel: Any = refused_class("ConsistencyLevel", _WHY, _USE)
MapperOptions: Any = refused_class("MapperOptions", _WHY, _USE)
