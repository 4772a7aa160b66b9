"""The ResourceManager: TaskManagers, their slots, and how many workers are asked for.

Runs in the leading JobManager.  Never decides what a slot is used for, nor where a worker comes from.
"""
