"""Messages to the user, all on standard error: standard output is for what a command was asked for."""

from __future__ import annotations

import sys
from pathlib import Path


def say(message: str) -> None:
    """One line of progress or of what is wrong."""
    print(f"{Path(sys.argv[0]).name}: {message}", file=sys.stderr, flush=True)
