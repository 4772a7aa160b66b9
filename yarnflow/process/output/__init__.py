"""What becomes of the output of child processes.

Runs in whoever starts processes.  Never starts or ends one.
"""
