"""Names of side outputs.  PyFlink: ``pyflink.datastream.output_tag``."""

from yarnflow.operators.functions.output_tag import OutputTag

__all__ = ["OutputTag"]
