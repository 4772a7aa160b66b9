"""The operators of one level run together: chained, fed with blocks, advanced by watermarks.

Runs in workers.  A level is described by plain values (:mod:`~yarnflow.operators.task.description`)
and run one key group at a time; what goes to later levels leaves as blocks of pickled elements.
Never decides how blocks and state travel, nor when a batch is committed.
"""
