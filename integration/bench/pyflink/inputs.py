"""Input files: made once for each shape and size, the same bytes every time."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

#: one for each of the two subtasks
FILES: Final = 2
_START_MS: Final = 1_700_000_000_000
#: records of a key that follow each other, where they come in bursts
_BURST: Final = 5


class Order(Enum):
    """In which order keys come."""

    RANDOM = "random"
    #: several records of a key, then some of another
    BURSTS = "bursts"
    #: each key once in each of two folders, in orders of their own
    PAIRS = "pairs"


@dataclass(frozen=True)
class Input:
    """Files of one input.

    Attributes
    ----------
    directory : Path
    records : int
    told : int
        Records that the printed results speak of, if none was lost.
    """

    directory: Path
    records: int
    told: int


def make_input(scratch: Path, order: Order, keys: int, records: int) -> Input:
    """Write files of ``key,time in ms,amount``, unless they are there; times rise by 1 ms."""
    directory = scratch / f"{order.value}-{keys}-{records}"
    # written last, and no name that an engine reads
    complete = scratch / f"{directory.name}.told"
    if complete.exists():
        return Input(directory, records, int(complete.read_text()))
    shutil.rmtree(directory, ignore_errors=True)
    numbers = random.Random(keys)
    if order is Order.PAIRS:
        half = records // 2
        for name in ("orders", "payments"):
            # payments come near their orders, before or after
            places = [place + numbers.randrange(keys) for place in range(half)]
            _write(directory / name, sorted(range(half), key=places.__getitem__), numbers)
        told = len(range(0, half, 1000))
    else:
        found = list(_keys(order, keys, records, numbers))
        _write(directory, found, numbers)
        told = found.count(0)
    complete.write_text(str(told))
    return Input(directory, records, told)


def _keys(order: Order, keys: int, records: int, numbers: random.Random) -> Iterator[int]:
    each = _BURST if order is Order.BURSTS else 1
    for _ in range(records // each):
        key = numbers.randrange(keys)
        for _ in range(each):
            yield key


def _write(directory: Path, keys: list[int], numbers: random.Random) -> None:
    directory.mkdir(parents=True)
    amounts = numbers.choices(range(100), k=len(keys))
    for part in range(FILES):
        with open(directory / f"part-{part}.txt", "w", encoding="ascii") as file:
            file.writelines(
                f"{keys[position]},{_START_MS + position},{amounts[position]}\n"
                for position in range(part, len(keys), FILES)
            )
