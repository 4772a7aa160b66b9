"""RabbitMQ: names only.  PyFlink: ``pyflink.datastream.connectors.rabbitmq``."""

from typing import Any, Final

from yarnflow.graph.compatibility import refused_class

_WHY: Final = "Spark has no RabbitMQ connector"
_USE: Final = "foreach_batch(…) with a client for Python"

RMQConnectionConfig: Any = refused_class("RMQConnectionConfig", _WHY, _USE)
RMQSink: Any = refused_class("RMQSink", _WHY, _USE)
RMQSource: Any = refused_class("RMQSource", _WHY, _USE)
