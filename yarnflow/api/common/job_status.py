"""States of jobs.  PyFlink: ``pyflink.common.job_status``."""

from yarnflow.core.states import JobStatus

__all__ = ["JobStatus"]
