"""What ``/proc`` tells of processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from yarnflow.core.resources.processes import ProcessStat, process_stat, process_stats

#: fields behind the name: state, parent, group, and further up to when it began, which is the 20th
FIELDS = "S 7 5 " + " ".join(["0"] * 16) + " 4711 0"


def put(proc: Path, pid: int, content: str) -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "stat").write_bytes(content.encode("latin-1"))


@pytest.mark.parametrize("name", ["python", "a (b) c", ") S 1 1", "\xff"])
def test_a_name_may_have_whatever_it_likes(name: str, tmp_path: Path) -> None:
    put(tmp_path, 12, f"12 ({name}) {FIELDS}")
    assert process_stat(12, tmp_path) == ProcessStat(True, parent=7, group=5, began="4711")


@pytest.mark.parametrize("state", ["Z", "X"])
def test_one_that_has_ended_does_not_run(state: str, tmp_path: Path) -> None:
    put(tmp_path, 12, f"12 (x) {state}{FIELDS[1:]}")
    stat = process_stat(12, tmp_path)
    assert stat is not None and not stat.runs


def test_those_that_cannot_be_understood_are_left_out(tmp_path: Path) -> None:
    put(tmp_path, 12, f"12 (x) {FIELDS}")
    put(tmp_path, 13, "")
    put(tmp_path, 14, "14 (x) S a b")
    (tmp_path / "15").mkdir()
    (tmp_path / "self").mkdir()
    assert [pid for pid, _ in process_stats(tmp_path)] == [12]
    assert list(process_stats(tmp_path / "nothing")) == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells")
def test_a_process_of_this_machine() -> None:
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        stat = process_stat(child.pid)
        assert stat is not None and dict(process_stats())[child.pid].began == stat.began
        assert (stat.runs, stat.parent, stat.group) == (True, os.getpid(), child.pid)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        ended = process_stat(child.pid)
        assert ended is not None and not ended.runs
    finally:
        child.kill()
        child.wait()
    assert process_stat(child.pid) is None
