"""From operators of a job graph to DataFrames; chains of Python functions run in one Arrow round trip.

Runs in the driver, the chains in Python workers.  Never decides which operators are chained: ``graph`` does.
"""
