"""What tells whether figures level off tells it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from integration.faults.levels import ROLES, growing, largest
from yarnflow.spark.launch.executor_command import EXECUTOR_MAIN
from yarnflow.spark.launch.jvm import GATEWAY_MAIN

pytestmark = pytest.mark.gate

NAMES = ("jobmanager mib", "driver threads", "zookeeper znodes")
#: opens as many files as it is told, and starts as many threads
_LARGE = """
import os, sys, threading
held = [os.open(os.devnull, os.O_RDONLY) for _ in range(int(sys.argv[1]))]
for _ in range(int(sys.argv[2])):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


def _samples(*values: float) -> list[dict[str, float]]:
    return [dict.fromkeys(NAMES, value) for value in values]


def test_what_levels_off_is_not_named() -> None:
    assert growing(_samples(50, 200, 300, 350, 380, 385, 390, 391, 390, 391)) == []
    # a peak is no growth
    assert growing(_samples(*[100] * 17, 900, *[100] * 2)) == []


def test_what_grows_is_named() -> None:
    found = growing(_samples(*range(0, 400, 20)))
    assert [text.partition(":")[0] for text in found] == [*NAMES]


def test_a_process_that_was_not_there_is_passed_over() -> None:
    samples = _samples(*range(0, 400, 20))
    for sample in samples[15:17]:
        del sample["driver threads"]
    assert [text.partition(":")[0] for text in growing(samples)] == ["jobmanager mib", "zookeeper znodes"]


def test_few_samples_say_nothing() -> None:
    with pytest.raises(AssertionError, match="too few"):
        growing(_samples(1, 2, 3))


def test_memory_of_a_jvm_may_grow_more() -> None:
    for name, growth_mib in (("driver mib", 40), ("executor mib", 100), ("driver-jvm mib", 100)):
        samples = [{name: 200.0 + growth_mib * (n >= 6)} for n in range(8)]
        assert [text.partition(":")[0] for text in growing(samples)] == [name]
    for name in ("executor mib", "driver-jvm mib"):
        assert growing([{name: 200.0 + 40 * (n >= 6)} for n in range(8)]) == []


def test_figures_of_a_role_are_of_its_largest_processes() -> None:
    sizes = [(50, 1), (2, 20)]
    words = [[sys.executable, "-c", _LARGE, str(files), str(threads)] for files, threads in sizes]
    pipe = subprocess.PIPE
    started = [subprocess.Popen(each, stdin=pipe, stdout=pipe, text=True) for each in words]
    seen = [psutil.Process(each.pid) for each in started]
    try:
        for each in started:
            assert each.stdout is not None and each.stdout.readline() == "ready\n"
        found = largest("executor", seen)
    finally:
        for each in started:
            each.communicate("")
    assert found.keys() == {"executor mib", "executor descriptors", "executor threads"}
    assert found["executor descriptors"] > 50 and found["executor threads"] > 20 and found["executor mib"] > 1
    assert largest("executor", seen) == {}, "they have ended"


def test_all_processes_of_a_cluster_are_measured() -> None:
    """By what the commands that start them have."""
    assert ROLES["driver-jvm"] in GATEWAY_MAIN and ROLES["executor"] in EXECUTOR_MAIN
    package = Path(__file__).parents[2] / "yarnflow"
    for role in ("jobmanager", "driver", "taskmanager"):
        module = ROLES[role].removeprefix("yarnflow.").replace(".", "/")
        assert (package / f"{module}.py").is_file()
