"""What users subclass: functions, key selectors, partitioners, and what these are given at run time.

Names and signatures are PyFlink's.  Runs in clients (only to be pickled) and workers; never decides
when a function is called.
"""
