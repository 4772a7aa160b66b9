"""Ids of jobs.  PyFlink: ``pyflink.common.job_id``."""


class JobID(str):
    """32 hexadecimal digits; text in every way."""

    __slots__ = ()
