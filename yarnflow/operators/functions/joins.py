"""Functions that see elements of two streams that belong together.

Java Flink's names; PyFlink has none of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, TypeAlias

from yarnflow.operators.functions.base import Function
from yarnflow.operators.functions.process import Results


class JoinFunction(Function):
    """A pair of elements of one key and window in, one element out."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Any:
        """The element for the pair."""

    def __call__(self, first: Any, second: Any) -> Any:
        return self.join(first, second)


class FlatJoinFunction(Function):
    """A pair of elements of one key and window in, any number out."""

    @abstractmethod
    def join(self, first: Any, second: Any) -> Results:
        """The elements for the pair."""


class CoGroupFunction(Function):
    """Sees all elements of two streams of one key and window at once; either side may have none."""

    @abstractmethod
    def co_group(self, first: Iterable[Any], second: Iterable[Any]) -> Results:
        """The elements for the two groups, which are lists."""

    def __call__(self, first: Iterable[Any], second: Iterable[Any]) -> Results:
        return self.co_group(first, second)


class JoinContext(ABC):
    """What is known of a pair; only good during the call.  Times are ms since the epoch."""

    @abstractmethod
    def get_left_timestamp(self) -> int:
        """Event time of the left element."""

    @abstractmethod
    def get_right_timestamp(self) -> int:
        """Event time of the right element."""

    @abstractmethod
    def get_timestamp(self) -> int:
        """Event time of what the function gives: the later of the two."""


class ProcessJoinFunction(Function):
    """A pair of elements of one key that are near in time in, any number out, to any side outputs."""

    Context: TypeAlias = JoinContext

    @abstractmethod
    def process_element(self, left: Any, right: Any, ctx: JoinContext) -> Results:
        """The elements for the pair."""
