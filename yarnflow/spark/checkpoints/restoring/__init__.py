"""State brought to a job before its queries start: what there is, whether it fits the program, and the copy.

Runs in the driver.  Never decides which state a job starts from.
"""
