"""One attempt of a job's queries: started, watched, stopped at batch borders, their errors explained.

Runs in the driver.  Never decides whether a failed query is started again.
"""
