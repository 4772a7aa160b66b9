"""The line between a supervisor and its JobManager: what is said, how, and the end in each process.

Never decides anything.  Flink has no counterpart: there the JobManager talks to YARN.
"""
