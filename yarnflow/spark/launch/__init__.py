"""Starting JVMs: the driver's SparkSession, an executor's command line, class-data archives, Java itself.

Runs in drivers, TaskManagers and where a machine is prepared.  Never decides when or how many.
"""
