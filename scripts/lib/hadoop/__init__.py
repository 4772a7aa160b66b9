"""A real Hadoop on one machine, for trying yarnflow and for its tests; `scripts/hadoop` is its command.

HDFS (one NameNode, one DataNode), YARN (ResourceManager, two NodeManagers) and ZooKeeper, each a process of
its own, with everything they write below one folder.  Only the standard library is used, so that it runs
before anything is installed.
"""
