"""The driver process: one attempt of one job, Python and a JVM with the SparkSession.

Never decides whether the job is started again, nor which executors it has: the JobMaster does.
"""
