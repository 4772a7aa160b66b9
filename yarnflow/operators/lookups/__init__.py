"""Rows of outside tables, found by their keys: what is kept of them, and how often a table is asked.

Runs in workers.  Never asks a table itself, and knows no clock: what asks, waits and tells the time is handed
in.  Flink counterpart: ``CachingLookupFunction``.
"""
