"""Sessions that fire at their end only: as the general operator does, with less work per element.

Between two watermarks such sessions only grow and merge, so what happened to the sessions of a key
in a chunk is worked out first; timers and state are brought up to date once, at the chunk's end.
"""

from __future__ import annotations

from typing import Any

from yarnflow.operators.process.operator import OperatorContext
from yarnflow.operators.process.user_code import noted
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.tables import StateTable
from yarnflow.operators.windows.operator.merging import MERGING_WINDOWS
from yarnflow.operators.windows.operator.per_chunk import Interval, PerChunkOperator
from yarnflow.operators.windows.session_windows import SessionWindows


class _Session:
    """One session of a key while a chunk is handled."""

    __slots__ = ("start_ms", "end_ms", "contents_in", "stored", "kept", "values")

    def __init__(self, window: Interval, contents_in: Interval, stored: list[Interval]) -> None:
        self.start_ms, self.end_ms = window
        #: namespace of its contents
        self.contents_in = contents_in
        #: the windows it is made of that have timers
        self.stored = stored
        #: whether it may have contents in state
        self.kept = bool(stored)
        #: elements not put into its contents yet
        self.values: list[Any] = []

    @property
    def window(self) -> Interval:
        return (self.start_ms, self.end_ms)


class SessionOperator(PerChunkOperator):
    """Windows of :class:`SessionWindows` with the assigner's own trigger.

    Parameters are those of the base.  State is the same as that of the general operator.
    """

    assigner: SessionWindows[Any]
    _windows: StateTable

    def open(self, context: OperatorContext) -> None:
        super().open(context)
        self._windows = self.state.table(MERGING_WINDOWS, StateKind.VALUE)

    def add_elements(self, keys: list[Any], values: list[Any], timestamps: list[int]) -> None:
        sessions_of: dict[Any, list[_Session]] = {}
        gap_ms = self.assigner.session_gap_ms or 0
        fixed, now_ms = gap_ms > 0, self.context.processing_time_ms
        watermark_ms = self.context.current_watermark_ms if self.is_event_time else None
        for key, value, start_ms in zip(keys, values, timestamps, strict=True):
            if watermark_ms is None:
                start_ms = now_ms
            end_ms = start_ms + (gap_ms if fixed else self._gap_ms(value))
            sessions = sessions_of.get(key)
            if sessions is None:
                sessions = sessions_of[key] = self._load(key)
            touched = [other for other in sessions if other.start_ms <= end_ms and start_ms <= other.end_ms]
            if touched:
                session = touched[0] if len(touched) == 1 else self._merge(key, sessions, touched)
                if start_ms < session.start_ms:
                    session.start_ms = start_ms
                if end_ms > session.end_ms:
                    session.end_ms = end_ms
            else:
                window = (start_ms, end_ms)
                if self.is_over(window):
                    self.add_late(value, start_ms)
                    continue
                session = _Session(window, window, [])
                sessions.append(session)
            session.values.append(value)
            if watermark_ms is not None and session.end_ms - 1 <= watermark_ms:
                self._put_values(key, session)
                self.fire(key, session.window, session.contents_in)
        for key, sessions in sessions_of.items():
            self._store(key, sessions)

    def _gap_ms(self, value: Any) -> int:
        try:
            return self.assigner.gap_ms(value)
        except Exception as error:
            raise noted(error, self.state.operator_name, "element", value) from None

    def contents_of(self, key: Any, window: Interval) -> Any:
        return self._windows.get(key, None, {}).get(window)

    def forget(self, key: Any, window: Interval) -> None:
        others = {known: kept_in for known, kept_in in self._windows.get(key).items() if known != window}
        if others:
            self._windows.put(key, others)
        else:
            self._windows.remove(key)

    def _load(self, key: Any) -> list[_Session]:
        stored = self._windows.get(key, None, {})
        return [_Session(window, contents_in, [window]) for window, contents_in in stored.items()]

    def _merge(self, key: Any, sessions: list[_Session], touched: list[_Session]) -> _Session:
        """Make one session of several; the contents of the first stay where they are."""
        session, *others = touched
        for other in others:
            sessions.remove(other)
            session.start_ms = min(session.start_ms, other.start_ms)
            session.end_ms = max(session.end_ms, other.end_ms)
            session.stored.extend(other.stored)
            if other.kept:
                self._put_values(key, session)
                self._put_values(key, other)
                self.contents.merge(key, session.contents_in, [other.contents_in])
                session.kept = True
            else:
                session.values.extend(other.values)
        return session

    def _put_values(self, key: Any, session: _Session) -> None:
        if session.values:
            self.contents.add_group(session.contents_in, {key: session.values})
            session.values = []
            session.kept = True

    def _store(self, key: Any, sessions: list[_Session]) -> None:
        """Bring contents, timers and the windows of a key up to date."""
        changed = False
        for session in sessions:
            self._put_values(key, session)
            window = session.window
            if session.stored != [window]:
                changed = True
                for old in session.stored:
                    self.unregister(key, old)
                self.register(key, window)
        if changed:
            self._windows.put(key, {session.window: session.contents_in for session in sessions})
