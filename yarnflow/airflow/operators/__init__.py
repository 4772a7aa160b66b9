"""Tasks about one job each: submit, stop, savepoint, restart, drill.

Runs in a worker; what waits long is left to a trigger.  Never decides what a job does.
"""
