"""The end of a job.  PyFlink: ``pyflink.common.job_execution_result``."""

from yarnflow.api.executor import JobExecutionResult

__all__ = ["JobExecutionResult"]
