"""The TaskExecutor: a TaskManager's slots and executors, and its registration with the leader.

Runs in the TaskManager process.  Never decides which job gets a slot, nor how an executor is started.
"""
