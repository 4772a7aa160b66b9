"""The only importer of pyspark: how a job graph or a script becomes streaming queries, and what they need.

Runs in drivers; ``launch`` also where JVMs and executors are started, ``translate`` also in Python workers.
Never decides about restarts, slots or executors.
"""
