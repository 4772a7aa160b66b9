"""Messages to the user, all on standard error: standard output is for what a command was asked for."""

from __future__ import annotations

import sys


def say(message: str) -> None:
    """One line of progress or of what is wrong."""
    print(f"hadoop: {message}", file=sys.stderr, flush=True)
