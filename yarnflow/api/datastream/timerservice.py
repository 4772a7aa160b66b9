"""Timers of process functions.  PyFlink: ``pyflink.datastream.timerservice``."""

from yarnflow.operators.functions.time import TimerService

__all__ = ["TimerService"]
