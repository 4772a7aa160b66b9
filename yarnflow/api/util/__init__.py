"""Helpers that PyFlink's own modules share.  PyFlink: ``pyflink.util``.

Programs that name them find them; those that reach into Java are refused.
"""
