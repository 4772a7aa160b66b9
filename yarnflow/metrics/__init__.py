"""The JobManager's metrics: the newest values of everything in the cluster, and who is told of them.

Runs in the leading JobManager; what it holds is bounded, and is lost with the process.  It never measures
jobs itself, never keeps a history, and never decides what an alert is.
"""
