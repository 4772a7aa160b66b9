"""A key group's state as a savepoint has it, in whichever form it was written: for readers, not for runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from yarnflow.errors import InvariantViolated
from yarnflow.operators.state.backends.group_log import GroupLog
from yarnflow.operators.state.backends.group_pages import GroupPages
from yarnflow.operators.state.backends.group_storage import GroupHead, LogEntry, PagesHead
from yarnflow.operators.state.store import Snapshot


def read_saved(
    head: GroupHead,
    entries: Mapping[int, LogEntry],
    loads: Callable[[bytes], Any],
    operators: Collection[str] | None = None,
) -> Snapshot:
    """A group's state.

    Parameters
    ----------
    head : LogHead or PagesHead
    entries : mapping
        All of the group's, by number.
    loads : callable
        Pickle's, or one that makes less of what it reads.
    operators : collection of str, optional
        Whose state is wanted; None = all of it.  Of others there may be some as well, where that cannot be
        read apart.

    Raises
    ------
    InvariantViolated
        Entries that the head names are missing.
    """
    storage = _SavedGroup(head, entries)
    try:
        if isinstance(head, PagesHead):
            return GroupPages(_never, loads, _never).open(storage, head).read_out(operators)
        return GroupLog(_never, loads, _never).open(storage, head).snapshot()
    except AssertionError as error:
        raise InvariantViolated("the head of a key group names an entry that there is not") from error


@dataclass(frozen=True, slots=True)
class _SavedGroup:
    saved_head: GroupHead
    entries: Mapping[int, LogEntry]

    def head(self) -> GroupHead:
        return self.saved_head

    def entry(self, number: int) -> LogEntry | None:
        return self.entries.get(number)

    def set_head(self, head: GroupHead) -> None:
        _never()

    def put_entry(self, number: int, entry: LogEntry) -> None:
        _never()

    def remove_entry(self, number: int) -> None:
        _never()


def _never(*args: Any) -> NoReturn:
    raise InvariantViolated("saved state is only read")
