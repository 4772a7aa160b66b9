"""Programs that were uploaded: their files, what is in them, and how a run of one is asked for.

Runs in the JobManager, in threads of its REST interface.  Never runs anything of a program.
"""
