"""Jars that jobs bring: packages resolved, and all of them put on the class path.

Packages are resolved by Spark's own code over Ivy, in a JVM of Spark, so that what ``spark-submit`` finds
is found here.  Decides nothing about what a job asks for (:mod:`yarnflow.core.jars`).
"""
