"""The errors of tasks: one line each, which says what is known of the job.

Those of yarnflow itself (:mod:`yarnflow.errors`) are in them by their code.  A task that fails with one is
retried as Airflow was told.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk.exceptions import AirflowException


class YarnflowTaskError(AirflowException):
    """A task cannot do what it is for."""


class ConnectionUnusable(YarnflowTaskError):
    """The Airflow connection is missing, or what it says cannot be used."""


class CommandFailed(YarnflowTaskError):
    """The command ``yarnflow`` ended with an error.

    Parameters
    ----------
    code : str
        Of the error's class in :mod:`yarnflow.errors`; ``USAGE`` = its command line cannot be read,
        empty = it said nothing.
    message : str
        One line.
    details : str
        The program's traceback, where there is one.
    document : mapping, optional
        What was done before the error: the jobs that were accepted, the savepoint that is complete.
    """

    def __init__(
        self,
        code: str,
        message: str,
        details: str = "",
        document: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.details = details
        self.document: Mapping[str, Any] = document or {}


class Unreachable(YarnflowTaskError):
    """No address of the cluster's REST interface answers."""


class Refused(YarnflowTaskError):
    """The cluster's REST interface has answered with an error.

    Parameters
    ----------
    status : int
        Of HTTP.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class JobNotSuccessful(YarnflowTaskError):
    """A job FAILED, was CANCELED, or nobody knows how it ended."""
