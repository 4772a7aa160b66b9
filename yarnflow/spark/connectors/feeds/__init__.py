"""Sources that are received in the driver and read by Spark's tasks in numbered parts.

For systems that give each message to one reader and forget it: a part is fixed before Spark plans a
micro-batch with it, and stays until that batch is committed.  Spark asks for parts in a Python process of its
own beside the driver, which asks the driver through a connection on this machine.
"""
