"""The JobManager's REST interface, Flink's wherever yarnflow has the thing.

Never decides what is true: it asks the Dispatcher.  Runs in the JobManager, in threads of its own.
"""
