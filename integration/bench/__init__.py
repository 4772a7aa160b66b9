"""Measurements of a running cluster, each a script of its own.  Never asserts: it prints what it measured."""
