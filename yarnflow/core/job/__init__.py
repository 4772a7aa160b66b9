"""A job's states, its executions, its record, and whether it goes on after a failure.

Decided in the JobManager.  Never decides what is started or ended for the job: that is
:mod:`yarnflow.core.job_run`.
"""
