"""ZooKeeper sessions of processes that were killed, ended by their supervisor.

ZooKeeper keeps a session, and the latch or lease it holds, for the whole session time-out after
the last sign of life.  A supervisor knows better: it has seen the process end.  The session's id
and password are enough to take it over, and to close it.  They stand in a file that only the user
can read.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from yarnflow.ha.settings import ZooKeeperSettings

logger = logging.getLogger(__name__)

_TIMEOUT_S: Final = 5.0


def kazoo_logger() -> logging.Logger:
    """For its clients: what they warn of is told in our own words, and they would write passwords."""
    found = logging.getLogger("kazoo")
    found.setLevel(logging.ERROR)
    return found


def write_session(directory: Path, pid: int, session: tuple[int, bytes]) -> None:
    """Leave a session for the supervisor; replaces an older one of the process."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = _file(directory, pid)
    temporary = path.with_suffix(".tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        json.dump({"session_id": session[0], "password": session[1].hex()}, file)
    temporary.replace(path)


def remove_session(directory: Path, pid: int) -> None:
    """The process has closed its session."""
    try:
        _file(directory, pid).unlink(missing_ok=True)
    except OSError as error:
        logger.info("%s", error)


def close_session_of(directory: Path, pid: int, settings: ZooKeeperSettings) -> bool:
    """End the session of a process that has ended; False when it left none or ZooKeeper is away.

    Must be called only when nothing of the process can write any more.
    """
    path = _file(directory, pid)
    try:
        found = json.loads(path.read_text("ascii"))
        session = (int(found["session_id"]), bytes.fromhex(found["password"]))
    except FileNotFoundError:
        return False
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("%s cannot be used: %s; its session ends by its time-out", path, error)
        return False
    path.unlink(missing_ok=True)
    client = KazooClient(
        hosts=settings.quorum,
        timeout=settings.session_timeout_ms / 1000,
        client_id=session,
        logger=kazoo_logger(),
    )
    try:
        client.start(timeout=_TIMEOUT_S)
        client.stop()
    except (KazooTimeoutError, KazooException, OSError) as error:
        # an expired session is refused; one that is not ends by itself
        logger.info("The session of process %d was not closed: %s", pid, type(error).__name__)
        return False
    finally:
        client.close()
    logger.info("Closed the ZooKeeper session of process %d.", pid)
    return True


def _file(directory: Path, pid: int) -> Path:
    return directory / f"{pid}.json"
