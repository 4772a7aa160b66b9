"""What a running job is measured by: Spark's progress and status store, and what Python workers counted.

Runs in the driver, in a thread of its own; makes the dumps that reports carry to the JobManager.  It never
changes anything of the job, and never decides what is done about a value.
"""
