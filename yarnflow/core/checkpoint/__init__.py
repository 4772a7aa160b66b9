"""When a job's checkpoints are taken and what is said about them; the manifest of saved state.

Decided in the JobManager; drivers and clients use the messages and the manifest.  Never decides what Spark
writes, nor where it lies.
"""
