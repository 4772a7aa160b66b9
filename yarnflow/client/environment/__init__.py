"""Python environments for containers: what is in one, how it is packed, where it is kept on HDFS.

Runs in the user's command.  Never decides which environment a job uses: the options name it.
"""
