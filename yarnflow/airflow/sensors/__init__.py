"""Tasks that wait until a job is in a state, has a recent checkpoint, or has caught up.

Runs in a worker, for as long as one question.  Never decides what a job does.
"""
