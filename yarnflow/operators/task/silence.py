"""How long a stream has to be silent until nobody waits for its watermark, known when a job is planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Silence:
    """Of one stream, in ms; None = it is waited for however long it is silent."""

    #: since its sources have ended then
    ended_ms: int | None = None
    #: since the program's watermark strategy says so
    idle_ms: int | None = None

    @property
    def after_ms(self) -> int | None:
        """The shorter of both."""
        return min((ms for ms in (self.ended_ms, self.idle_ms) if ms is not None), default=None)


def silence_behind(feeding: Sequence[Silence]) -> Silence:
    """That of an operator's output, which is silent when all that feeds it is."""
    strategies = any(silence.idle_ms is not None for silence in feeding)
    return Silence(
        _longest([silence.ended_ms for silence in feeding]),
        _longest([silence.after_ms for silence in feeding]) if strategies else None,
    )


def silence_behind_strategy(feeding: Sequence[Silence], idle_ms: int | None) -> Silence:
    """That behind new timestamps: as in Flink the end of streams passes them, their idleness does not."""
    return Silence(silence_behind(feeding).ended_ms, idle_ms)


def _longest(silences_ms: Sequence[int | None]) -> int | None:
    known = [silence_ms for silence_ms in silences_ms if silence_ms is not None]
    return max(known) if known and len(known) == len(silences_ms) else None
