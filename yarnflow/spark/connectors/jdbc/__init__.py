"""Rows of a micro-batch in databases, each batch once.

Runs in the driver, which claims a sink, and in the Python worker that writes a batch.  Never decides which
batch counts: the database does, by :mod:`yarnflow.operators.databases`.
"""
