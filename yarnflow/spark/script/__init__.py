"""Unmodified PySpark scripts: their main, and the streaming queries they start.

Runs in the driver.  Never changes what a script does, except for where its queries keep checkpoints.
"""
