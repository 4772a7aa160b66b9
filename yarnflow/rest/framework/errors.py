"""What is wrong with a request, in Flink's shape."""

from __future__ import annotations

from typing import Final

import msgspec

from yarnflow.errors import InternalError, RpcError, YarnflowError

JSON: Final = "application/json; charset=UTF-8"
#: of what a client sent, in errors and logs
MAX_SHOWN_CHARACTERS: Final = 100


class ErrorAnswer(msgspec.Struct):
    """Body of every answer that is no success.  Flink: ``ErrorResponseBody``."""

    errors: list[str]


class RestError(Exception):
    """A request that is answered with an error.

    Parameters
    ----------
    status : int
        HTTP status.
    message : str
        One line: what is wrong, and what to do.
    details : str
        What belongs to it, such as the traceback of a user's program; empty = nothing.
    """

    def __init__(self, status: int, message: str, details: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.details = details


def about_to_end() -> RestError:
    """Whoever asks is late: this JobManager takes no more work."""
    return RestError(503, "this JobManager is about to end")


def of_yarnflow(error: YarnflowError) -> RestError:
    """An error of ours: only what must not happen is the server's fault."""
    status = error.http_status
    if isinstance(error, RpcError) and status < 500:
        # of a call that this server made: neither the client's request nor its token is wrong
        status = 502
    if status == 500 and not isinstance(error, InternalError):
        status = 503 if error.retryable else 409
    return RestError(status, error.message, getattr(error, "traceback_text", ""))


def error_body(*messages: str) -> bytes:
    """JSON of an :class:`ErrorAnswer`."""
    return msgspec.json.encode(ErrorAnswer(list(messages)))
