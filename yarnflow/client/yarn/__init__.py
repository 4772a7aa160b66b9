"""Clusters on YARN as their clients see them: to deploy, to find, to follow and to end.

Runs in the user's command.  Never talks to YARN or HDFS by itself: ``yarn``, ``fs`` and ``staging`` do.
Never decides what a cluster does once its master runs.
"""
