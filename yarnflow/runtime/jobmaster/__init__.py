"""The JobMaster of one job: its drivers, slots, executors, checkpoints, restarts and hot spare.

Runs in the leading JobManager.  Never decides which TaskManager gives a slot, nor when a job is accepted or
forgotten.
"""
