"""What a master writes down so that the next one finds it: jobs, results, checkpoints, newest states.

Used in JobManagers; clients read the newest states.  Never decides what is worth keeping.
"""
