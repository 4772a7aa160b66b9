"""Memory that adds up, and memory that does not."""

from __future__ import annotations

from dataclasses import astuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from yarnflow.config.configuration import Configuration
from yarnflow.core.resources.memory import (
    DriverMemory,
    TaskManagerMemory,
    driver_memory,
    driver_memory_of,
    executor_memory_of,
    shared_too_small,
    task_manager_memory,
    task_manager_memory_of,
)
from yarnflow.errors import InvalidMemory


def test_defaults_are_flinks_worked_example() -> None:
    """1728m: overhead 192m, metaspace 256m, managed 512m as Flink's documentation has it."""
    assert task_manager_memory() == TaskManagerMemory(1728, 128, 192, 256, 512, 0, 640)
    assert driver_memory() == DriverMemory(1600, 256, 192, 256, 896)


def test_overhead_is_a_share_within_bounds() -> None:
    assert task_manager_memory(4000).overhead_mib == 400
    assert task_manager_memory(40_000).overhead_mib == 1024
    assert driver_memory(4000).overhead_mib == 400


@given(
    process=st.integers(0, 100_000),
    framework=st.integers(0, 2000),
    offheap=st.integers(0, 2000),
    managed=st.floats(0, 0.99),
)
def test_parts_sum_up_to_the_process(process: int, framework: int, offheap: int, managed: float) -> None:
    try:
        sizes = task_manager_memory(process, framework, offheap, managed)
    except InvalidMemory:
        assume(False)
    total, *parts = astuple(sizes)
    assert total == process == sum(parts)
    assert sizes.executor_heap_mib >= 450 and min(parts) >= 0


def test_too_little_names_both_numbers_and_a_size_that_is_enough() -> None:
    with pytest.raises(InvalidMemory) as caught:
        task_manager_memory(1000)
    said = str(caught.value)
    assert "process.size is 1000 MiB" in said
    assert "leave 204 MiB for the executor's heap; Spark needs 450 MiB" in said
    assert "set it to 1410m or more" in said
    assert task_manager_memory(1410).executor_heap_mib == 450
    with pytest.raises(InvalidMemory):
        task_manager_memory(1409)
    with pytest.raises(InvalidMemory, match="leave 96 MiB for the driver's heap.* set it to 1154m or more"):
        driver_memory(800)
    assert driver_memory(1154).heap_mib == 450


def test_a_size_that_is_enough_is_found_from_nothing() -> None:
    with pytest.raises(InvalidMemory, match="is 0 MiB, .* leave 0 MiB .* set it to 1410m or more"):
        task_manager_memory(0)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"overhead_min_mib": 500, "overhead_max_mib": 400}, "overhead.min is 500 MiB and .max 400 MiB"),
        ({"overhead_fraction": 1.0}, "overhead.fraction is 1.0"),
        ({"managed_fraction": -0.1}, "managed.fraction is -0.1"),
    ],
)
def test_shares_and_bounds_must_make_sense(values: dict[str, float], said: str) -> None:
    with pytest.raises(InvalidMemory, match=said):
        task_manager_memory(**values)  # type: ignore[arg-type]


def test_sizes_of_the_options() -> None:
    assert task_manager_memory_of(Configuration.empty()) == task_manager_memory()
    assert driver_memory_of(Configuration.empty(), 1600) == driver_memory()
    values = {
        "taskmanager.memory.process.size": "4g",
        "taskmanager.memory.framework.size": "200m",
        "taskmanager.memory.task.off-heap.size": "100m",
        "taskmanager.memory.managed.fraction": "0.3",
        "taskmanager.memory.jvm-overhead.fraction": "0.2",
        "taskmanager.memory.jvm-overhead.min": "10m",
        "taskmanager.memory.jvm-overhead.max": "800m",
        "taskmanager.memory.jvm-metaspace.size": "300m",
    }
    expected = task_manager_memory(4096, 200, 100, 0.3, 0.2, 10, 800, 300)
    assert task_manager_memory_of(Configuration.from_dict(values, "test")) == expected


def task_manager_of(process_mib: int, slots: int, offheap_mib: int = 0) -> Configuration:
    values = {
        "taskmanager.memory.process.size": f"{process_mib}m",
        "taskmanager.memory.task.off-heap.size": f"{offheap_mib}m",
        "taskmanager.numberOfTaskSlots": str(slots),
    }
    return Configuration.from_dict(values, "test")


@pytest.mark.parametrize("slots", [1, 3])
def test_a_job_with_all_slots_has_all_memory(slots: int) -> None:
    configuration = task_manager_of(4096, slots, 100)
    whole, executor = task_manager_memory_of(configuration), executor_memory_of(configuration, slots)
    assert (executor.heap_mib, executor.offheap_mib) == (whole.executor_heap_mib, 100)
    assert (executor.python_mib, executor.metaspace_mib) == (whole.python_mib, whole.metaspace_mib)
    assert executor.total_mib == whole.process_mib - whole.framework_mib


def test_the_only_executor_has_all_memory_whatever_its_slots() -> None:
    configuration = task_manager_of(4096, 4, 100)
    assert executor_memory_of(configuration, 1, is_only_one=True) == executor_memory_of(configuration, 4)


@given(
    slots=st.lists(st.integers(1, 5), min_size=2, max_size=4),
    per_slot_mib=st.integers(1150, 20_000),
    offheap=st.integers(0, 400),
)
def test_executors_of_several_jobs_are_within_the_task_manager(
    slots: list[int], per_slot_mib: int, offheap: int
) -> None:
    configuration = task_manager_of(128 + sum(slots) * per_slot_mib, sum(slots), offheap)
    whole = task_manager_memory_of(configuration)
    executors = [executor_memory_of(configuration, given) for given in slots]
    assert shared_too_small(configuration) == ""
    assert sum(e.total_mib for e in executors) + whole.framework_mib <= whole.process_mib
    assert sum(e.offheap_mib for e in executors) <= offheap
    assert min(e.heap_mib for e in executors) >= 468 and min(e.python_mib for e in executors) > 0


def test_a_share_that_is_too_small_is_said() -> None:
    """Spark needs what it needs: the executors start, and the TaskManager says what may come of it."""
    configuration = task_manager_of(1728, 2)
    # 800 MiB, of which overhead and metaspace take 448; Python has as much as it had in two jobs before
    assert executor_memory_of(configuration, 1).heap_mib == 468
    assert executor_memory_of(configuration, 1).python_mib == 256
    said = shared_too_small(configuration)
    assert "needs 1172 MiB there and has a share of 800 MiB, so 2 such jobs" in said
    assert "set it to 2472m, or lower taskmanager.numberOfTaskSlots" in said
    assert shared_too_small(task_manager_of(2472, 2)) == ""
    assert shared_too_small(task_manager_of(1728, 1)) == ""


def test_managed_memory_may_have_a_size_of_its_own() -> None:
    sizes = task_manager_memory_of(
        Configuration.from_dict(
            {"taskmanager.memory.process.size": "4g", "taskmanager.memory.managed.size": "1g"}, "test"
        )
    )
    assert sizes.python_mib == 1024
    assert sizes.executor_heap_mib == 4096 - 128 - sizes.overhead_mib - 256 - 1024
    with pytest.raises(InvalidMemory, match="python 1600"):
        task_manager_memory(process_mib=1728, managed_mib=1600)


def test_a_part_of_a_task_manager_has_its_share_of_managed_memory() -> None:
    configuration = Configuration.from_dict(
        {
            "taskmanager.memory.process.size": "16g",
            "taskmanager.memory.managed.size": "4g",
            "taskmanager.numberOfTaskSlots": "4",
        },
        "test",
    )
    assert executor_memory_of(configuration, 1).python_mib == 1024
