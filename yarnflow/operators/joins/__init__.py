"""Joins of two keyed streams: by an interval of event time, and by windows.

Run in workers.  Never decide how streams are keyed nor how far event time has come.
"""
