"""Child processes, the supervisor that owns them and what they need on this machine.

Used in supervisors, and by their children for logs and directories.  Never decides how many drivers or
TaskManagers there should be: the JobManager does.
"""
