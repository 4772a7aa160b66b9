"""The TaskManager process and its Spark executors; the same with and without YARN.

Never decides which job has a slot, nor whether an executor is started again: the JobManager does.
"""
