"""ZooKeeper sessions of a master's container, as a process knows them that outlives the container.

When YARN ends a container its directory goes at once, and with it the files in which its processes
have left their sessions.  So they are read while the container lives, and written where they are still
wanted when it does not.  That spares the next leader and the next driver the session time-out.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from yarnflow.process.leftovers import await_nothing_left
from yarnflow.process.logs import LOG_FILE_ENVIRONMENT

#: where it is certain that it survives the container
_TEMPORARY: Final = "/tmp"


class LeftSessions:
    """Sessions of the processes below one supervisor.

    Parameters
    ----------
    sessions : Path
        Directory in which each process leaves a file named by its pid.
    logs : Path
        Directory of the processes' logs, by which they are known.
    close : callable
        ``(directory, pid)``: end the session that a process has left in a directory.
    timeout_s : float
        How long processes of each log may still run before their sessions are left to ZooKeeper.
    """

    def __init__(
        self, sessions: Path, logs: Path, close: Callable[[Path, int], object], timeout_s: float = 10.0
    ) -> None:
        self._sessions = sessions
        self._logs = logs
        self._close = close
        self._timeout_s = timeout_s
        self._known: dict[int, bytes] = {}
        self._marks: set[str] = set()

    def look(self) -> None:
        """Read what there is; keeps what it knows once the container is gone."""
        try:
            found = {int(file.stem): file.read_bytes() for file in self._sessions.glob("*.json")}
            names = [path for path in self._logs.iterdir() if path.suffix == ".log"]
        except (OSError, ValueError):
            return
        if not self._sessions.is_dir():
            return
        self._known = found
        self._marks.update(f"{LOG_FILE_ENVIRONMENT}={path}" for path in names)

    def close(self) -> None:
        """End them, unless something of the processes still runs after a while."""
        if not self._known:
            return
        if not all(await_nothing_left(-1, mark, self._timeout_s) for mark in self._marks):
            return
        with tempfile.TemporaryDirectory(dir=_TEMPORARY, prefix="yarnflow-") as folder:
            for pid, content in self._known.items():
                file = Path(folder, f"{pid}.json")
                file.touch(mode=0o600)
                file.write_bytes(content)
                self._close(Path(folder), pid)
