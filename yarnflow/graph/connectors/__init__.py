"""What is read and written, and what that promises, as plain values: one module for each kind of system.

Adapters are in :mod:`yarnflow.spark.connectors`.
"""
