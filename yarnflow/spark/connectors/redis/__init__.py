"""Redis: commands in transactions, which note the micro-batch they are of.

Runs in one worker for each batch; the driver claims the sink before its query starts.
"""
