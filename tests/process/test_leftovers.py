"""Processes that others have started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from yarnflow.process.leftovers import end_grandchildren

#: starts a child, which starts a grandchild, which starts another one; prints their ids, and stays
FAMILY = """
import os, signal, subprocess, sys, time
depth = int(sys.argv[1])
if depth:
    subprocess.Popen([sys.executable, __file__, str(depth - 1)])
if depth == 0:
    # the line before may just be being written: nothing of Python's own buffers
    signal.signal(signal.SIGHUP, lambda number, frame: (os.write(1, b"closed\\n"), os._exit(0)))
print(depth, os.getpid(), flush=True)
time.sleep(1000)
"""


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def test_what_children_have_started_ends_and_they_do_not(tmp_path: Path) -> None:
    program = tmp_path / "family.py"
    program.write_text(FAMILY)
    head = subprocess.Popen(
        [sys.executable, program, "3"], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert head.stdout is not None
        lines = (head.stdout.readline().split() for _ in range(4))
        pids = {int(depth): int(pid) for depth, pid in lines}
        end_grandchildren(pids[3], grace_s=5.0)
        assert head.stdout.readline() == "closed\n", "it was not let to close anything"
        assert [_runs(pids[depth]) for depth in (3, 2, 1, 0)] == [True, True, False, False]
        end_grandchildren(pids[0])  # there is none
    finally:
        os.killpg(head.pid, 9)
        head.communicate()
