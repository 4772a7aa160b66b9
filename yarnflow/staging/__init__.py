"""What lies on the shared file system for clusters on YARN: cache, applications' directories, job keys.

Used by clients and by processes in containers.  Never decides when a cluster ends or who may have a job key
beyond what the files say.
"""
