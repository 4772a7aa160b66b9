"""Tests with real processes: JVMs, Spark, ZooKeeper, HDFS, YARN.  Slow; ``tests/`` has everything else."""
