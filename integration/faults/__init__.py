"""Processes that are killed or frozen while jobs run, and what of the jobs survives."""
