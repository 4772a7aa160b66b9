"""For functions of ``foreach_batch`` that write to a database exactly once.  PyFlink has nothing like it."""

from yarnflow.operators.databases.commits import batch_token, commit_once
from yarnflow.operators.databases.tokens import BatchToken

__all__ = ["BatchToken", "batch_token", "commit_once"]
