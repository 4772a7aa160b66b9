"""What is measured, what it means, and when somebody has to be told.

One declaration per metric, what follows from what the JobManager knows of a job, and the decider of the
alerts.  Used by all processes; it never measures anything, and never decides how a value is shown or sent.
"""
