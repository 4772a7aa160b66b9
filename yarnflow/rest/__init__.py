"""The JobManager's web page and the read-only part of Flink's REST interface.

Runs in the JobManager, in threads of its own.  Never changes anything and never decides what is true: it asks
the Dispatcher.
"""
