"""What runs per element: the operators of PyFlink programs, their state, timers and windows.

Pure: no Spark, no Arrow, no threads, no clock; elements, watermarks and times are passed in, and
what is to be emitted, stored or logged comes out.  Workers import these modules, and users'
functions subclass classes defined here.  Never decides what an operator is on Spark
(:mod:`yarnflow.spark.translate`) nor what a program means (:mod:`yarnflow.api`).
"""
