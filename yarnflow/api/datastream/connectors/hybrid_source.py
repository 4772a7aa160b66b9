"""Sources one after the other: names only.  PyFlink: ``pyflink.datastream.connectors.hybrid_source``."""

from typing import Any, Final

from yarnflow.graph.compatibility import refused_class

_WHY: Final = "Spark reads all sources at once"
_USE: Final = "union(…), or a job per source"

HybridSource: Any = refused_class("HybridSource", _WHY, _USE)
HybridSourceBuilder: Any = refused_class("HybridSourceBuilder", _WHY, _USE)
