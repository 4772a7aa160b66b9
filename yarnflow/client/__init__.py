"""What a client does: load a program, find a cluster, submit, watch.

Runs in the user's command or program, without a JVM of its own except to submit to YARN.  Never decides what
becomes of a job: the JobManager does.  Never starts a cluster's processes in its own: ``entrypoint`` does.
"""
