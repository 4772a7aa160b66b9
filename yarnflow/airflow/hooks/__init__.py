"""The connection to a cluster: what is configured, the command, and REST.

Runs in workers and in the triggerer, whose calls are the asynchronous ones.  Never decides what an end means
to a task.
"""
