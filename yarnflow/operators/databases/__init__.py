"""Databases that sinks and users' functions write to: addresses, statements, and who has written which batch.

Runs in workers and in drivers, on connections that others open; imports no database's library.  Never decides
when a batch is written.
"""
