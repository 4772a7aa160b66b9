"""Why a container ended.

Decides what skein's message about a container means: an exit status, and words for people.  YARN's
codes below -99 say that YARN itself ended it.  Flink counterpart: ``YarnContainerEventHandler``'s
reading of ``ContainerStatus``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_ABORTED: Final = -100
_DISKS_FAILED: Final = -101
_PREEMPTED: Final = -102
_TOO_MUCH_VIRTUAL_MEMORY: Final = -103
_TOO_MUCH_MEMORY: Final = -104
#: what skein says of any exit status above 0
_SEE_LOGS: Final = "see logs for more information"
_MEMORY: Final = re.compile(r"([0-9.]+ [KMGT]?B) of ([0-9.]+ [KMGT]?B) (physical|virtual) memory used")
_STATUS: Final = re.compile(r"\bexit(?:ed with an? | ?)?(?:code|status)\s*[:=]?\s*(-?\d+)", re.I)
_KNOWN: Final[tuple[tuple[re.Pattern[str], int], ...]] = (
    (re.compile(r"exceeding memory limits|beyond the '?physical'? memory", re.I), _TOO_MUCH_MEMORY),
    (re.compile(r"virtual memory", re.I), _TOO_MUCH_VIRTUAL_MEMORY),
    (re.compile(r"preempt", re.I), _PREEMPTED),
    (re.compile(r"disk\(?s?\)? failed|disk failure", re.I), _DISKS_FAILED),
    (re.compile(r"lost\*? node|released on|node.*(lost|unusable|decommission)|abort", re.I), _ABORTED),
)
_SIGNALS: Final = {137: "killed by signal 9", 143: "killed by signal 15", 134: "aborted (signal 6)"}


@dataclass(frozen=True, slots=True)
class ContainerExit:
    """An exit status as :class:`yarnflow.core.messages.WorkerExit` has it, and what is said of it."""

    exit_status: int | None
    diagnostics: str
    #: nothing but "it failed" is known
    vague: bool = False


def container_exit(state: str, message: str) -> ContainerExit:
    """Read skein's final state of a container and its exit message."""
    text = message.strip()
    if state == "SUCCEEDED":
        return ContainerExit(0, "")
    if state == "KILLED":
        return ContainerExit(None, "killed by request of the ApplicationMaster")
    if memory := _MEMORY.search(text):
        used, limit, kind = memory.groups()
        status = _TOO_MUCH_MEMORY if kind == "physical" else _TOO_MUCH_VIRTUAL_MEMORY
        return ContainerExit(
            status, f"killed by YARN because it used {used} of {limit} {kind} memory (exit status {status})"
        )
    if _SEE_LOGS in text:
        return ContainerExit(None, "its process failed", vague=True)
    for pattern, status in _KNOWN:
        if pattern.search(text):
            return ContainerExit(status, f"{text} (exit status {status})")
    found = _STATUS.search(text)
    return ContainerExit(int(found[1]) if found else None, text or "YARN gave no reason")


def process_exit(exit_code: int | None, log_tail: str) -> ContainerExit:
    """What a container's own process left: its exit code if it is known, and the end of its log."""
    said = "its process failed"
    status = exit_code
    if exit_code is not None:
        meaning = _SIGNALS.get(exit_code)
        said = f"its process ended with exit status {exit_code}" + (f", {meaning}" if meaning else "")
        status = 128 - exit_code if meaning else exit_code
    last = "\n".join(line for line in log_tail.splitlines() if line.strip())
    return ContainerExit(status, f"{said}; the end of its log:\n{last}" if last else said)
