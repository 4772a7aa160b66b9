"""The endpoints: a room for each, with one mailbox thread around what ``core`` decides.

Runs in JobManagers, TaskManagers and drivers.  Sees adapters only through protocols, and never decides how a
call travels, how a process starts or where anything is stored.
"""
