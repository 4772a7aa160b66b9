"""Sessions that fire at their end only: as the general operator does, with less work per element.

Between two watermarks such sessions only grow and merge, so what happened to the sessions of a key
in a chunk is worked out first; timers and state are brought up to date once, at the chunk's end.
"""

from __future__ import annotations

from bisect import bisect_right
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

    __slots__ = ("start_ms", "end_ms", "contents_in", "stored", "kept", "values", "number")

    def __init__(self, window: Interval, contents_in: Interval, stored: list[Interval], number: int) -> None:
        self.start_ms, self.end_ms = window
        #: namespace of its contents
        self.contents_in = contents_in
        #: the windows it is made of that have timers
        self.stored = stored
        #: whether it may have contents in state
        self.kept = bool(stored)
        #: elements not put into its contents yet
        self.values: list[Any] = []
        #: rises with the sessions of a key in the order they were opened
        self.number = number

    @property
    def window(self) -> Interval:
        return (self.start_ms, self.end_ms)


class _Sessions:
    """All sessions of a key, sorted by their starts; as none touches another, by their ends as well."""

    __slots__ = ("starts_ms", "by_start", "opened")

    def __init__(self, stored: dict[Interval, Interval]) -> None:
        opened = [_Session(found, stored[found], [found], number) for number, found in enumerate(stored)]
        self.by_start = sorted(opened, key=lambda session: session.start_ms)
        self.starts_ms = [session.start_ms for session in self.by_start]
        #: so many sessions were opened
        self.opened = len(opened)

    def touched(self, start_ms: int, end_ms: int) -> slice:
        """Where those are that overlap or touch a window."""
        until = since = bisect_right(self.starts_ms, end_ms)
        while since and self.by_start[since - 1].end_ms >= start_ms:
            since -= 1
        return slice(since, until)

    def replace(self, place: slice, session: _Session) -> None:
        """Put a session where some sessions, or none, are."""
        self.by_start[place] = [session]
        self.starts_ms[place] = [session.start_ms]

    def open(self, place: slice, window: Interval) -> _Session:
        """A new session at an empty place."""
        session = _Session(window, window, [], self.opened)
        self.opened += 1
        self.replace(place, session)
        return session


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
        sessions_of: dict[Any, _Sessions] = {}
        gap_ms = self.assigner.session_gap_ms or 0
        fixed, now_ms = gap_ms > 0, self.context.processing_time_ms
        watermark_ms = self.context.current_watermark_ms if self.is_event_time else None
        for key, value, start_ms in zip(keys, values, timestamps, strict=True):
            if watermark_ms is None:
                start_ms = now_ms
            end_ms = start_ms + (gap_ms if fixed else self._gap_ms(value))
            sessions = sessions_of.get(key)
            if sessions is None:
                sessions = sessions_of[key] = _Sessions(self._windows.get(key, None, {}))
            latest = sessions.by_start[-1] if sessions.by_start else None
            if latest is not None and latest.start_ms <= start_ms <= latest.end_ms:
                # most elements come in order; no session stands behind this one that it could touch
                session = latest
                if end_ms > latest.end_ms:
                    latest.end_ms = end_ms
            else:
                found = self._session_of(key, sessions, start_ms, end_ms)
                if found is None:
                    self.add_late(value, start_ms)
                    continue
                session = found
            session.values.append(value)
            if watermark_ms is not None and session.end_ms - 1 <= watermark_ms:
                self._put_values(key, session)
                self.fire(key, session.window, session.contents_in)
        for key, sessions in sessions_of.items():
            self._store(key, sessions)

    def _session_of(self, key: Any, sessions: _Sessions, start_ms: int, end_ms: int) -> _Session | None:
        """The session an element's window belongs to from now on; None: it is late."""
        place = sessions.touched(start_ms, end_ms)
        touched = sessions.by_start[place]
        if not touched:
            window = (start_ms, end_ms)
            return None if self.is_over(window) else sessions.open(place, window)
        if len(touched) == 1 and touched[0].start_ms <= start_ms:
            (session,) = touched
        else:
            session = self._merged(key, touched)
            session.start_ms = min(session.start_ms, start_ms)
            sessions.replace(place, session)
        session.end_ms = max(session.end_ms, end_ms)
        return session

    def _gap_ms(self, value: Any) -> int:
        try:
            return self.assigner.gap_ms(value)
        except Exception as error:
            raise noted(error, self.state.operator_name, "element", value) from None

    def contents_of(self, key: Any, window: Interval) -> Any:
        return self._windows.get(key, None, {}).get(window)

    def forget(self, key: Any, window: Interval) -> None:
        windows = self._windows.get(key)
        del windows[window]
        if windows:
            self._windows.put(key, windows)
        else:
            self._windows.remove(key)

    def _merged(self, key: Any, touched: list[_Session]) -> _Session:
        """Make one session of several; the contents of the one opened first stay where they are."""
        session, *others = sorted(touched, key=lambda one: one.number)
        for other in others:
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

    def _store(self, key: Any, sessions: _Sessions) -> None:
        """Bring contents, timers and the windows of a key up to date."""
        changed = False
        in_order = sorted(sessions.by_start, key=lambda session: session.number)
        for session in in_order:
            self._put_values(key, session)
            window = session.window
            if session.stored != [window]:
                changed = True
                for old in session.stored:
                    self.unregister(key, old)
                self.register(key, window)
        if changed:
            self._windows.put(key, {session.window: session.contents_in for session in in_order})
