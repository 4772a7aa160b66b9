"""Which windows of a key exist where windows merge, and under which window each one's state lies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from yarnflow.errors import InvariantViolated
from yarnflow.operators.windows.assigner import MergingWindowAssigner
from yarnflow.operators.windows.window import MergeCallback

#: name of the state: key → namespace of each of its windows → namespace of that one's contents
MERGING_WINDOWS = "merging-window-set"

#: result of a merge, windows that became it, window under which its state lies, and those whose
#: state is to be merged into that
OnMerge = Callable[[Any, list[Any], Any, list[Any]], None]


class _Merges(MergeCallback[Any]):
    """Collects what an assigner wants merged."""

    def __init__(self) -> None:
        self.found: list[tuple[Any, list[Any]]] = []

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        self.found.append((merge_result, list(to_be_merged)))


class MergingWindowSet:
    """The windows of one key.  Flink: ``MergingWindowSet``.

    When windows merge, the state of the first of them stays where it is, and that of the others is
    moved to it; so the first window of a session keeps the state however far the session grows.

    Parameters
    ----------
    assigner : MergingWindowAssigner
        Says what merges.
    state_windows : dict
        Window → window under which its state lies, in the order they came into being.  Changed in
        place.
    """

    def __init__(self, assigner: MergingWindowAssigner[Any, Any], state_windows: dict[Any, Any]) -> None:
        self._assigner = assigner
        self.state_windows = state_windows

    def state_window(self, window: Any) -> Any:
        """Under which window the state of a window lies; None: there is no such window."""
        return self.state_windows.get(window)

    def retire(self, window: Any) -> None:
        """Forget a window."""
        if self.state_windows.pop(window, None) is None:
            raise InvariantViolated(f"window {window} is to be removed, but there is no such window")

    def add(self, window: Any, on_merge: OnMerge) -> Any:
        """Add a window; returns the one it is part of after merging.

        ``on_merge`` is told of each merge that changes windows there were before.
        """
        state_windows = self.state_windows
        merges = _Merges()
        self._assigner.merge_windows([*state_windows, window], merges)
        result = window
        for merged_into, members in merges.found:
            if window in members:
                result = merged_into
            # in the order of this set, so that the outcome does not depend on that of the assigner's
            merged = [known for known in state_windows if known in members]
            if not merged or merged == [merged_into]:
                continue
            state_window, *others = [state_windows[known] for known in merged]
            # the place of the first of them is kept: it came into being before those behind it
            entries = [
                (merged_into if known == merged[0] else known, where)
                for known, where in state_windows.items()
                if known == merged[0] or known not in merged
            ]
            state_windows.clear()
            state_windows.update(entries)
            on_merge(merged_into, merged, state_window, others)
        state_windows.setdefault(result, result)
        return result
