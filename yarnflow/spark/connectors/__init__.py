"""Sources and sinks of a job graph as Spark's readers and writers.

Runs in the driver; what reads sockets and writes files runs in Python workers too.  Never decides when a
batch begins or whether it counts.
"""
