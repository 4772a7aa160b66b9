"""The shapes of the answers, and how they are made of what the JobManager knows: pure functions.

Names of fields are Flink's.  What has no counterpart is null or left out, never a number that nobody has
measured; what Flink does not have is added.
"""
