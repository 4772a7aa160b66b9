"""What processes use, read of real ones."""

from __future__ import annotations

import os
import subprocess
import sys

from yarnflow.process.resources.usage import (
    LoadMeter,
    ProcessUsage,
    below,
    max_descriptors,
    usage_of,
    usage_of_all,
)

#: far above what it takes to start a process
_SAYS_READY = "import sys; print('ready', flush=True); sys.stdin.read()"

#: a file of another process, whose threads open none meanwhile
_OPENS = (
    "import os, sys; print('ready', flush=True); sys.stdin.readline(); file = open(os.devnull); "
    "print('ready', flush=True); sys.stdin.read()"
)


def test_this_process() -> None:
    used = usage_of(os.getpid())
    assert used.processes == 1 and used.threads >= 1
    assert used.memory_bytes > 5 * 1024 * 1024 and used.cpu_ns > 0
    assert 0 < used.descriptors <= max_descriptors()


def test_open_files_are_counted() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _OPENS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None and child.stdout is not None and child.stdout.readline()
        before = usage_of(child.pid).descriptors
        child.stdin.write(b"\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"ready\n"
        assert usage_of(child.pid).descriptors == before + 1


def test_a_process_that_is_not_there_uses_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as child:
        child.wait()
    assert usage_of(child.pid) == ProcessUsage()
    assert usage_of_all([child.pid, os.getpid()]).processes == 1


def test_descendants_are_found() -> None:
    nested = "import subprocess, sys; " f"subprocess.run([sys.executable, '-c', {_SAYS_READY!r}])"
    with subprocess.Popen(
        [sys.executable, "-c", nested], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        found = below(child.pid)
        assert len(found) == 1 and found[0] != child.pid
        assert child.pid in below(os.getpid()) and found[0] in below(os.getpid())


def test_load_is_a_share_of_all_processors() -> None:
    now_ns = [0]
    meter = LoadMeter(lambda: now_ns[0], processors=4)
    assert meter.read(1_000) == 0.0
    now_ns[0] = 1_000
    assert meter.read(3_000) == 0.5
    now_ns[0] = 2_000
    assert meter.read(2_000) == 0.0, "one of the processes has ended"
    now_ns[0] = 2_001
    assert meter.read(10**9) == 1.0
