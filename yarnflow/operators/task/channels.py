"""Watermarks of the channels into a level, as one group knows them.

Flink counterpart: ``StatusWatermarkValve``, and ``WatermarksWithIdleness`` for whole streams: their senders
are not called while they have nothing to send, so it is noticed here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from yarnflow.operators.elements import MIN_WATERMARK_MS
from yarnflow.operators.process.operator import WatermarkStatus
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.task.micro_batch import MicroBatch

_NEVER_MS: Final = -1


class _Told(NamedTuple):
    """What a channel told last."""

    watermark_ms: int = MIN_WATERMARK_MS
    idle: bool = False
    #: by the clock; only kept where silence matters, as what follows
    at_ms: int = _NEVER_MS
    #: run of the job that it told it to
    run_ms: int = 0


class Channels:
    """What the channels of a level have told; in the store of the group bound at present.

    Parameters
    ----------
    names : mapping
        Channel → name of what is kept of it in a group's store.
    idle_after_ms : mapping
        Channel → how long it tells nothing, by the clock, until nobody waits for it.
    """

    def __init__(self, names: Mapping[int, Hashable], idle_after_ms: Mapping[int, int]) -> None:
        self._names = names
        self._idle_after_ms = idle_after_ms
        self._store = GroupStore()
        self._batch = MicroBatch()

    def bind(self, store: GroupStore, batch: MicroBatch) -> None:
        """Turn to a group."""
        self._store = store
        self._batch = batch

    def take_over(self, told: Mapping[int, Sequence[WatermarkStatus]]) -> None:
        """What the senders of a micro-batch told, by channel; a channel never goes back.

        The earliest of a channel's senders counts, idle ones only if there are no others.
        """
        for channel, statuses in told.items():
            active = [status.watermark_ms for status in statuses if not status.idle]
            watermark_ms = min(active) if active else max(status.watermark_ms for status in statuses)
            self._put(channel, max(self._told(channel).watermark_ms, watermark_ms), not active)
        for channel in self._idle_after_ms:
            before = self._told(channel)
            if before.at_ms == _NEVER_MS:
                # silent since it was first waited for
                self._put(channel, before.watermark_ms, before.idle)

    def status(self, channels: Iterable[int]) -> WatermarkStatus:
        """Watermark of several channels together: that of the earliest one that is not idle."""
        found = [self._status(channel) for channel in channels]
        active = [status.watermark_ms for status in found if not status.idle]
        if not active:
            return WatermarkStatus(max(status.watermark_ms for status in found), True)
        return WatermarkStatus(min(active))

    def _status(self, channel: int) -> WatermarkStatus:
        """It holds its receiver back as long as it is expected to tell something."""
        told, idle_after_ms = self._told(channel), self._idle_after_ms.get(channel)
        silent = idle_after_ms is not None and self._batch.time_ms - told.at_ms >= idle_after_ms
        return WatermarkStatus(told.watermark_ms, told.idle or silent)

    def _told(self, channel: int) -> _Told:
        told = _Told(*self._store.get_progress(self._names[channel], ()))
        if channel in self._idle_after_ms and told.run_ms != self._batch.run_ms:
            # it could not tell anything in between: silence begins anew
            return _Told(told.watermark_ms)
        return told

    def _put(self, channel: int, watermark_ms: int, idle: bool) -> None:
        when = (self._batch.time_ms, self._batch.run_ms) if channel in self._idle_after_ms else ()
        self._store.put_progress(self._names[channel], (watermark_ms, idle, *when))
