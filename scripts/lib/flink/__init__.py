"""Flink's command line and dashboard for tests."""
