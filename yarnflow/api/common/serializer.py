"""Serializers.  PyFlink: ``pyflink.common.serializer``."""

from yarnflow.operators.windows.serializers import TypeSerializer

__all__ = ["TypeSerializer"]
