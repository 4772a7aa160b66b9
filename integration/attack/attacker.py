"""The attacker: another user of the machine, who may open sockets and write into folders of all.

A program of his is a module in ``integration/attack/programs``.  It starts as the user of the tests, as the
interpreter may stand in a folder of that user's, and calls :func:`become_attacker` behind its imports.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from integration.conftest import MARK, ROOT
from tests.patience import PATIENCE

#: no user of the machine has it
UID: Final = 47113
#: why a test is skipped that needs another user
NEEDS_ROOT: Final = "only root can act as another user; run the tests as root, in a container for instance"


def can_be_another_user() -> bool:
    """Return whether this process may start others under another user id."""
    return os.geteuid() == 0


def become_attacker() -> None:
    """Give up all rights of the user of the tests, for good.

    Where the tests do not run as root, the program stays the tests' user; tests for which that would be
    another thing are skipped there.
    """
    if can_be_another_user():
        os.setgroups([])
        os.setresgid(UID, UID, UID)
        os.setresuid(UID, UID, UID)
    # what the user of the tests has in the environment is not the attacker's
    for name in ("HOME", "XDG_RUNTIME_DIR"):
        os.environ.pop(name, None)


def start_attack(program: str, *arguments: str | Path | int, mark: str = "") -> subprocess.Popen[str]:
    """Start a program of ``integration/attack/programs``; its output and errors come from one pipe.

    Parameters
    ----------
    mark : str
        That of the test's other processes, so that none is left behind.
    """
    return subprocess.Popen(
        _command(program, arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=ROOT,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **({MARK: mark} if mark else {})},
        text=True,
    )


def run_attack(program: str, *arguments: str | Path | int) -> str:
    """Run a program of ``integration/attack/programs`` to its end, and return what it wrote.

    Raises
    ------
    AssertionError
        It ended with another status than 0: the attack was not tried as it was meant.
    """
    attack = start_attack(program, *arguments)
    try:
        output, _ = attack.communicate(timeout=PATIENCE.command_s)
    finally:
        attack.kill()
        attack.wait()
    assert attack.returncode == 0, output
    return output


@contextmanager
def attackers_folder() -> Iterator[Path]:
    """Give a folder of the attacker's below ``/tmp``, which others may pass and read."""
    folder = Path(tempfile.mkdtemp(prefix="yarnflow-attacker-"))
    try:
        if can_be_another_user():
            os.chown(folder, UID, UID)
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _command(program: str, arguments: Sequence[str | Path | int]) -> list[str]:
    return [sys.executable, "-m", f"integration.attack.programs.{program}", *map(str, arguments)]
