"""Deterministic stand-ins for everything outside, for yarnflow's tests and for users'.

Nothing in yarnflow imports this package.
"""
