"""Programs of elements on Spark: levels as stages of one streaming query.

Decides how blocks are rows, how a level's groups find their state in Spark's state store, and what a
Python worker keeps between micro-batches.  What happens to elements is decided in
:mod:`yarnflow.operators.task`.
"""
