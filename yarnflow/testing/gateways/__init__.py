"""Other processes as their callers see them, one module for each gateway of :mod:`yarnflow.core.ports`.

They run in the test's own process and record what they are asked.  Never decide what follows from a call:
that is for the test to say.
"""
