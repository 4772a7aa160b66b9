"""File systems shared by all machines of a cluster: HDFS over WebHDFS, and directories of this machine.

Used by clients, supervisors and JobManagers, none of which has a JVM.  Never decides where anything lies.
"""
