"""Hadoop's own configuration: where its services are, and of which HDFS a path is.

Runs in every process.  Reads files and variables; never asks a service, and never decides whether Hadoop is
used.
"""
