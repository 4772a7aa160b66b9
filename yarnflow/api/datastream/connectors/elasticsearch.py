"""Elasticsearch: names only.  PyFlink: ``pyflink.datastream.connectors.elasticsearch``."""

from typing import Any, Final

from yarnflow.api.datastream.connectors.base import DeliveryGuarantee
from yarnflow.graph.compatibility import refused_class

_WHY: Final = "Spark has no Elasticsearch connector of its own"
_USE: Final = "foreach_batch(…) with a connector of Elasticsearch's own"

Elasticsearch6SinkBuilder: Any = refused_class("Elasticsearch6SinkBuilder", _WHY, _USE)
Elasticsearch7SinkBuilder: Any = refused_class("Elasticsearch7SinkBuilder", _WHY, _USE)
ElasticsearchEmitter: Any = refused_class("ElasticsearchEmitter", _WHY, _USE)
ElasticsearchSink: Any = refused_class("ElasticsearchSink", _WHY, _USE)
FlushBackoffType: Any = refused_class("FlushBackoffType", _WHY, _USE)

__all__ = [
    "DeliveryGuarantee",
    "Elasticsearch6SinkBuilder",
    "Elasticsearch7SinkBuilder",
    "ElasticsearchEmitter",
    "ElasticsearchSink",
    "FlushBackoffType",
]
