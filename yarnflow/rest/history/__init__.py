"""Jobs that have ended: their archives, written by a JobManager and served by the history server.

An archive holds answers of the REST interface as they were.  Runs in the JobManager (``recorder``,
``writer``) and in the history server (the others).  Never decides when a job has ended, nor what an answer
looks like.
"""
