"""Whole SQL queries over streams, as far as the client can tell without Spark.

:mod:`~yarnflow.graph.sql.dialect` parses, :mod:`~yarnflow.graph.sql.flink_windows` turns Flink's window
functions into Spark's, :mod:`~yarnflow.graph.sql.event_time` says whether results change, which of their
columns is event time and what a query would keep for ever, :mod:`~yarnflow.graph.sql.queries` puts it
together.
"""
