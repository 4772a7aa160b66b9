"""What ``yarnflow drill`` does: lets a fault happen to a running job and measures its recovery.

Runs in the user's command.  Never decides how a job recovers, and never breaks a process itself: it asks the
JobManager to, or Hadoop's own command.
"""
