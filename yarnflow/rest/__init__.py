"""The JobManager's web page and the read-only part of Flink's REST interface."""
