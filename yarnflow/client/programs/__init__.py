"""The user's program: found, told apart, run, and the keys by which its jobs are known.

Runs in the user's command, or beside the JobManager where the program runs there.  Never decides where its
jobs go or what a key that is taken means.
"""
