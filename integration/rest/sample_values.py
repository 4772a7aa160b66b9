"""What all parts of the sample cluster share: ids, names, the time."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Final

#: would run if it were taken for markup
HOSTILE: Final = "<img src=x onerror=\"document.title='taken over'\">"
RUNNING: Final = "a1" * 16
RESTARTING: Final = "b2" * 16
FAILED: Final = "c3" * 16
FINISHED: Final = "d4" * 16
CANCELED: Final = "e5" * 16
CREATED: Final = "f6" * 16
MIB: Final = 1024 * 1024
#: name, parallelism, busy, held back, inputs
VERTICES: Final[Sequence[tuple[str, int, float, float, Sequence[int]]]] = (
    ("Source: flights (Kafka) -> parse", 4, 0.31, 0.64, ()),
    ("Source: airports", 1, 0.02, 0.0, ()),
    ("join airports -> filter -> map", 4, 0.93, 0.02, (0, 1)),
    (f"TumblingEventTimeWindows {HOSTILE}", 4, 0.44, 0.0, (2,)),
    ("Sink: delays (Kafka)", 2, 0.11, 0.0, (3,)),
    ("Sink: rejected (files)", 1, 0.05, 0.0, (2, 0)),
)


def now_ms() -> int:
    """The time, as answers give it."""
    return time.time_ns() // 1_000_000


def vertex_id(number: int) -> str:
    """Of one of :data:`VERTICES`."""
    return f"{number + 1:x}" * 32


def wave() -> float:
    """A factor around 1 that moves."""
    return 1 + 0.15 * math.sin(now_ms() / 3000)
