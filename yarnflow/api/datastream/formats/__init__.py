"""Formats of files and messages.  PyFlink: ``pyflink.datastream.formats``.

Descriptions only, given to sources and sinks; reading and writing is Spark's.
"""
