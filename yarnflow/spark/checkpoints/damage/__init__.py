"""Damaged files of a query's state: what is sound, and how a query goes on from its newest sound batch.

Runs in the driver.  Never decides whether a job is started again, nor how often.
"""
