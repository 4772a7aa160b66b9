"""What is measured: programs, their inputs, and how many records each engine gets."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from integration.bench.pyflink.inputs import Order

#: names of engines
PROCESS: Final = "pyflink-process"
THREAD: Final = "pyflink-thread"
YARNFLOW: Final = "yarnflow"
BYTEWAX: Final = "bytewax"
SQL: Final = "flink-sql"

_LINE = re.compile(r"^\d+> |^")


@dataclass(frozen=True)
class Case:
    """One program with one kind of input.

    Attributes
    ----------
    name : str
    program : str
        File in ``programs/``.
    order : Order
    keys : int
        Of PAIRS: how far an order and its payment may lie apart, in records.
    records : dict
        Engine → records of the large input; the small one has a quarter.  As many as take long enough to be
        measured and no longer.
    arguments : tuple of str
        Of the program, behind folder and execution mode.
    tells : callable
        From a printed result to the number of records it speaks of.
    """

    name: str
    program: str
    order: Order
    keys: int
    records: dict[str, int]
    arguments: tuple[str, ...] = ()
    tells: Callable[[str], int] = lambda line: 1


def _of_window(line: str) -> int:
    """``(key, start, count, total)``"""
    return int(line.split(",")[2])


def _counter(keys: int, records: dict[str, int]) -> Case:
    others = {BYTEWAX: 3_200_000, SQL: 12_000_000}
    return Case(f"counter-{keys}", "counter.py", Order.RANDOM, keys, records | others)


CASES: Final = (
    Case(
        "chain",
        "chain.py",
        Order.RANDOM,
        10_000,
        {PROCESS: 1_600_000, THREAD: 2_400_000, YARNFLOW: 16_000_000},
    ),
    _counter(500, {PROCESS: 120_000, THREAD: 240_000, YARNFLOW: 12_000_000}),
    _counter(1_000, {PROCESS: 120_000, THREAD: 240_000, YARNFLOW: 12_000_000}),
    _counter(100_000, {PROCESS: 60_000, THREAD: 240_000, YARNFLOW: 12_000_000}),
    Case(
        "tumbling",
        "windows.py",
        Order.RANDOM,
        1_000,
        {PROCESS: 60_000, THREAD: 240_000, YARNFLOW: 8_000_000},
        ("tumbling",),
        _of_window,
    ),
    Case(
        "session",
        "windows.py",
        Order.BURSTS,
        1_000,
        {PROCESS: 60_000, THREAD: 240_000, YARNFLOW: 8_000_000},
        ("session",),
        _of_window,
    ),
    Case(
        "join",
        "join.py",
        Order.PAIRS,
        10_000,
        {PROCESS: 60_000, THREAD: 240_000, YARNFLOW: 8_000_000},
    ),
)


def without_subtask(line: str) -> str:
    """A printed result without the subtask's number before it."""
    return _LINE.sub("", line, count=1)
