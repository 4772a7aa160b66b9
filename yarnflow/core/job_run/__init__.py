"""The decider of one running job: events in, effects out, over an active and a spare driver group.

Decided in the JobManager, in the mailbox of the job; performed by :mod:`yarnflow.runtime.jobmaster`.  Never
does anything itself, and never reads a clock.  Begin with :mod:`~yarnflow.core.job_run.decider`.
"""
