"""Keyed state in Spark's files: which there are, and their rows.

Runs in drivers, and in a command that inspects a savepoint.  Reads only.
"""
