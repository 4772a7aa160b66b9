"""The job of a task: followed by its events, understood as the task waits for it, ended when the task is.

Runs in workers and in the triggerer.  Never decides what is submitted.
"""
