"""The error that ends a command with one line and an exit status."""

from __future__ import annotations

FAILED = 1
# as argparse does
USAGE = 2
# java or mvn is missing
NOT_INSTALLED = 3


class ClusterError(Exception):
    """What went wrong and what to do next, in words for the user."""

    def __init__(self, message: str, status: int = FAILED) -> None:
        super().__init__(message)
        self.status = status


class DaemonFailed(ClusterError):
    """A daemon ended or did not become ready; the end of its log belongs to the message."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} {reason}")
        self.name = name
