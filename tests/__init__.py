"""Tests without JVM and cluster; the folders mirror those of ``yarnflow/``."""
