"""Input formats of Flink's batch API.  PyFlink: ``pyflink.common.io``."""

from yarnflow.graph.compatibility import refused_class

InputFormat = refused_class("InputFormat", "Spark reads by sources", "from_source(FileSource…)")
