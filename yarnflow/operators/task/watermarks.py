"""Watermarks of several senders made one.

Flink counterpart: ``StatusWatermarkValve`` (senders of one edge) and ``CombinedWatermarkStatus`` (edges of
one operator).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from yarnflow.operators.elements import MIN_WATERMARK_MS
from yarnflow.operators.process.operator import WatermarkStatus


@dataclass(frozen=True, slots=True)
class EdgeWatermark:
    """What one sender tells about one edge."""

    edge: str
    sender: int
    status: WatermarkStatus


#: sender → watermark in ms and whether it is idle; plain tuples, since stores keep them
Senders = Mapping[int, tuple[int, bool]]


def with_sender(known: Senders, sender: int, status: WatermarkStatus) -> dict[int, tuple[int, bool]]:
    """What is known of the senders of an edge after one told its watermark; it never goes back."""
    before_ms, _ = known.get(sender, (MIN_WATERMARK_MS, False))
    return {**known, sender: (max(before_ms, status.watermark_ms), status.idle)}


def merge_senders(known: Senders, senders: int) -> WatermarkStatus:
    """Watermark of an edge: the earliest of the senders that are not idle.

    A sender that has told nothing yet holds it back.  When all are idle it is the latest of all, for
    there is nobody left to wait for.
    """
    told = [status for sender, status in known.items() if sender < senders]
    active = [watermark_ms for watermark_ms, idle in told if not idle]
    if len(told) < senders:
        return WatermarkStatus()
    if active:
        return WatermarkStatus(min(active))
    return WatermarkStatus(max((watermark_ms for watermark_ms, _ in told), default=MIN_WATERMARK_MS), True)


def merge_inputs(before: WatermarkStatus, inputs: Iterable[WatermarkStatus]) -> WatermarkStatus:
    """Watermark of an operator: the earliest of its edges that are not idle; it never goes back."""
    active = [status.watermark_ms for status in inputs if not status.idle]
    if not active:
        return WatermarkStatus(before.watermark_ms, True)
    return WatermarkStatus(max(before.watermark_ms, min(active)))
