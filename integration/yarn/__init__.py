"""Clusters on a real HDFS and YARN, in processes of this machine."""
