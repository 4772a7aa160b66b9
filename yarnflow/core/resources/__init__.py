"""Slots, executors, workers and memory: who has which, and how many there should be.

Decided in the JobManager; each TaskManager decides about its own slots.  Never decides where a container or
a process comes from.  :mod:`yarnflow.core.resources.processes` reads what the machine tells of its processes.
"""
