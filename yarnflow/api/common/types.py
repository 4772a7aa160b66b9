"""Rows.  PyFlink: ``pyflink.common.types``."""

from yarnflow.operators.row import Row, RowKind

__all__ = ["Row", "RowKind"]
