"""What YARN's daemons tell over HTTP: applications, queues, containers and their logs.

Used by clients and in containers, without a JVM.  Reads only, except for an application's priority.
"""
