"""What the command lines of scripts/hadoop and scripts/kafka have in common."""

from __future__ import annotations

import argparse
import signal
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from hadoop.errors import FAILED, ClusterError
from hadoop.output import say


def run_command(arguments: argparse.Namespace, servers_in: Callable[[Path], Any]) -> int:
    """Run ``arguments.run`` on the servers in the folder ``arguments.dir``; returns the exit status."""
    # so that an interrupted start cleans up after itself
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        return int(arguments.run(servers_in(arguments.dir), arguments))
    except ClusterError as error:
        say(str(error))
        return error.status
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except BrokenPipeError:
        return FAILED


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
