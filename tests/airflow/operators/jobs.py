"""A job that runs already, and what its tasks ask the command."""

from __future__ import annotations

from typing import Final

from yarnflow.testing.outside.command import FakeCommand

#: the savepoint that is made of it
PATH: Final = "hdfs:///sp/savepoint-1"


def last(command: FakeCommand, verb: str) -> list[str]:
    """Arguments of the last call of a verb."""
    return [call.arguments for call in command.calls if call.verb == verb][-1][2:]
