"""Pulsar: names only.  PyFlink: ``pyflink.datastream.connectors.pulsar``."""

from typing import Any, Final

from yarnflow.api.datastream.connectors.base import DeliveryGuarantee
from yarnflow.graph.compatibility import refused_class

_WHY: Final = "Spark has no Pulsar connector"
_USE: Final = "a PySpark script with a connector of Pulsar's own"

MessageDelayer: Any = refused_class("MessageDelayer", _WHY, _USE)
PulsarSink: Any = refused_class("PulsarSink", _WHY, _USE)
PulsarSinkBuilder: Any = refused_class("PulsarSinkBuilder", _WHY, _USE)
PulsarSource: Any = refused_class("PulsarSource", _WHY, _USE)
PulsarSourceBuilder: Any = refused_class("PulsarSourceBuilder", _WHY, _USE)
RangeGenerator: Any = refused_class("RangeGenerator", _WHY, _USE)
StartCursor: Any = refused_class("StartCursor", _WHY, _USE)
StopCursor: Any = refused_class("StopCursor", _WHY, _USE)
TopicRoutingMode: Any = refused_class("TopicRoutingMode", _WHY, _USE)

__all__ = [
    "DeliveryGuarantee",
    "MessageDelayer",
    "PulsarSink",
    "PulsarSinkBuilder",
    "PulsarSource",
    "PulsarSourceBuilder",
    "RangeGenerator",
    "StartCursor",
    "StopCursor",
    "TopicRoutingMode",
]
