"""Keyed state and timers of operators, and what of them is made durable.

Runs in workers: tables in plain dicts, bound to one key group at a time, recording what changes.
Values and keys are opaque.  Never decides where changes and snapshots are stored, nor when.
"""
