"""When state counts as too large, and what is read of this machine."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from yarnflow.core.resources.memory import task_manager_memory
from yarnflow.errors import StateTooLarge
from yarnflow.spark.elements import worker_memory
from yarnflow.spark.elements.worker_memory import MemoryUsage, MemoryWatch, memory_usage, too_large
from yarnflow.spark.elements.worker_runs import new_watch

MIB = 1 << 20
#: python 1372 of 4096 MiB
LIMITS = task_manager_memory(process_mib=4096)


def usage(own: int, others: tuple[int, ...] = (), container: int = 4000) -> MemoryUsage:
    return MemoryUsage(own * MIB, [own * MIB, *(other * MIB for other in others)], lambda: container * MIB)


@pytest.mark.parametrize(
    "found, full",
    [
        (usage(2000), True),
        (usage(700, (700,)), True),
        # there is room in the container, whatever Python uses
        (usage(2000, container=3700), False),
        # Python has not used up its share: the rest is the JVM's
        (usage(1000, (300,)), False),
        # others are to blame
        (usage(200, (1500, 1500)), False),
        (MemoryUsage(950, address_limit=1000), True),
        (MemoryUsage(900, address_limit=1000), False),
    ],
)
def test_state_is_too_large_when_the_container_is_nearly_full_of_it(found: MemoryUsage, full: bool) -> None:
    assert bool(too_large(LIMITS, found)) is full


def test_all_processes_are_looked_at_only_when_python_has_used_up_its_share() -> None:
    def container() -> int:
        raise AssertionError("looked at all processes")

    for own, others in ((1000, (300,)), (200, (1500, 1500))):
        assert not too_large(LIMITS, replace(usage(own, others), container=container))
    with pytest.raises(AssertionError, match="looked at"):
        too_large(LIMITS, replace(usage(2000), container=container))


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells")
def test_workers_are_the_daemon_s_children_on_every_kernel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    children = [subprocess.Popen(["sleep", "60"]) for _ in range(2)]
    try:
        own = {child.pid for child in children}
        # other tests may have left some that end just now
        assert own <= set(worker_memory._children(os.getpid()))
        for pid in (os.getpid(), *own):
            (tmp_path / str(pid)).mkdir()
            shutil.copy(f"/proc/{pid}/stat", tmp_path / str(pid) / "stat")
        monkeypatch.setattr(worker_memory, "PROC", tmp_path)
        assert set(worker_memory._children(os.getpid())) == own
    finally:
        for child in children:
            child.kill()
            child.wait()


class Machine:
    """Sizes and time that a test sets."""

    def __init__(self, resident: MemoryUsage, proportional: MemoryUsage) -> None:
        self.resident, self.proportional = resident, proportional
        self.now_s = 0.0
        self.released = self.looks = 0

    def usage(self, shared_counts_twice: bool) -> MemoryUsage:
        self.looks += 1
        return self.resident if shared_counts_twice else self.proportional

    def check(self, watch: MemoryWatch) -> None:
        watch.check(self.release, lambda: "too much", "help")

    def release(self) -> None:
        self.released += 1

    def watch(self, shared_counts_twice: bool) -> MemoryWatch:
        return MemoryWatch(LIMITS, self.usage, lambda: self.now_s, shared_counts_twice)


def test_what_processes_share_counts_once_unless_the_container_is_yarn_s() -> None:
    machine = Machine(usage(2000), usage(1000))
    machine.check(machine.watch(False))
    assert not machine.released
    with pytest.raises(StateTooLarge, match="^too much: its Python worker uses 2000 MiB.*; help$"):
        machine.check(machine.watch(True))


def test_what_can_be_let_go_is_let_go_first() -> None:
    machine = Machine(usage(2000), usage(2000))

    def release() -> None:
        machine.resident = usage(500)

    machine.watch(True).check(release, lambda: "too much", "help")


def test_it_looks_once_in_a_second() -> None:
    machine = Machine(usage(1), usage(1))
    watch = machine.watch(True)
    for machine.now_s in (0.0, 0.5, 0.9, 1.0, 1.5):
        machine.check(watch)
    assert machine.looks == 2


@pytest.mark.parametrize("shared_counts_twice", [True, False])
def test_sizes_of_this_machine(shared_counts_twice: bool) -> None:
    found = memory_usage(shared_counts_twice)
    assert found.own > 10 * MIB
    # the parent of this process takes the daemon's place
    assert found.own in found.workers
    assert found.container() > 10 * MIB


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells")
def test_address_space_that_is_only_reserved_is_not_used() -> None:
    # by what this process uses: after many tests that is much
    limit = 2 * memory_usage(True).own
    # as libraries and allocators reserve it
    with mmap.mmap(-1, limit):
        found = memory_usage(True)
        assert not too_large(LIMITS, replace(found, workers=(), address_limit=limit))


@pytest.mark.parametrize("share", [None, "100"])
def test_python_has_the_share_of_its_executor(share: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("YARNFLOW_PYTHON_MEMORY_MIB", raising=False)
    if share is not None:
        monkeypatch.setenv("YARNFLOW_PYTHON_MEMORY_MIB", share)
    limits = new_watch(LIMITS)._limits
    assert limits.python_mib == int(share or LIMITS.python_mib)
    assert limits.process_mib == LIMITS.process_mib, "of the container, with all there is in it"
