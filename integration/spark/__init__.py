"""Drivers against a real Spark, on this machine and without a cluster."""
