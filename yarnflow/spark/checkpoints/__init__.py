"""Savepoints and restores: the files of Spark's queries copied, checked, and described by a manifest.

Runs in the driver.  Never decides when a savepoint is taken, nor which state a job starts from.
"""
