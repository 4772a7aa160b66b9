"""Calling the user's window function, and what its context offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import GeneratorType
from typing import Any, cast

from yarnflow.errors import GraphError, UserCodeError
from yarnflow.operators.functions.base import close_function, open_function
from yarnflow.operators.functions.runtime_context import KeyedStateStore
from yarnflow.operators.functions.windows import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowContext,
    WindowFunction,
)
from yarnflow.operators.process.operator import OperatorContext

#: what a program can give for evaluating windows
AnyWindowFunction = (
    WindowFunction[Any, Any, Any, Any]
    | AllWindowFunction[Any, Any, Any]
    | ProcessWindowFunction[Any, Any, Any, Any]
    | ProcessAllWindowFunction[Any, Any, Any]
)
_KINDS = (WindowFunction, AllWindowFunction, ProcessWindowFunction, ProcessAllWindowFunction)


class EvaluationContext(WindowContext[Any]):
    """What a process window function can ask for; moved from window to window."""

    def __init__(
        self, operator: OperatorContext, window_state: KeyedStateStore, global_state: KeyedStateStore
    ) -> None:
        self._operator = operator
        self._window_state = window_state
        self._global_state = global_state
        self.current_window: Any = None

    def window(self) -> Any:
        return self.current_window

    def current_processing_time(self) -> int:
        return self._operator.processing_time_ms

    def current_watermark(self) -> int:
        return self._operator.current_watermark_ms

    def window_state(self) -> KeyedStateStore:
        return self._window_state

    def global_state(self) -> KeyedStateStore:
        return self._global_state


class Evaluation:
    """Makes the results of one window.

    Parameters
    ----------
    function : AnyWindowFunction or None
        The user's; None: the contents are the result.
    single : bool
        Contents are one value, of which functions see an iterable with one element.
    """

    def __init__(self, function: AnyWindowFunction | None, single: bool) -> None:
        self.function = function
        self._single = single
        self._context: EvaluationContext | None = None
        self._call: Callable[[Any, Any, Any], Any]
        #: whether the function has something to do when a window is gone
        self.clears = isinstance(function, (ProcessWindowFunction, ProcessAllWindowFunction)) and (
            type(function).clear not in (ProcessWindowFunction.clear, ProcessAllWindowFunction.clear)
        )

    def open(self, operator: OperatorContext, window_state: KeyedStateStore) -> None:
        """Open the function."""
        if self.function is not None:
            self._context = EvaluationContext(operator, window_state, operator.runtime_context)
            open_function(self.function, operator.runtime_context)
            self._call = self._caller(self.function, self._context)

    @staticmethod
    def _caller(function: AnyWindowFunction, context: EvaluationContext) -> Callable[[Any, Any, Any], Any]:
        """Calls the function with key, window and elements."""
        if isinstance(function, WindowFunction):
            return function.apply
        if isinstance(function, AllWindowFunction):
            return lambda key, window, elements: function.apply(window, elements)
        if isinstance(function, ProcessWindowFunction):

            def process(key: Any, window: Any, elements: Any) -> Any:
                context.current_window = window
                return function.process(key, context, elements)

            return process

        def process_all(key: Any, window: Any, elements: Any) -> Any:
            context.current_window = window
            return function.process(context, elements)

        return process_all

    def close(self) -> None:
        """Close the function."""
        if self.function is not None:
            close_function(self.function)

    def results(self, key: Any, window: Any, contents: Any) -> Iterable[Any]:
        """The results of a window with these contents.

        Raises
        ------
        UserCodeError
            The function returned something that cannot be iterated over.
        """
        elements = [contents] if self._single else contents
        if self.function is None:
            return cast("Iterable[Any]", elements)
        found = self._call(key, window, elements)
        if found is None:
            return ()
        # asking the abstract class takes longer than most functions do
        if not isinstance(found, (GeneratorType, list, tuple)) and not isinstance(found, Iterable):
            raise UserCodeError(
                f"{type(self.function).__name__} returned {type(found).__name__} for window {window}; "
                "yield the results, or return a list of them"
            )
        return found

    def clear(self, window: Any) -> None:
        """Tell the function that a window is gone."""
        context, function = self._context, self.function
        assert context is not None
        context.current_window = window
        if isinstance(function, (ProcessWindowFunction, ProcessAllWindowFunction)):
            function.clear(context)


def check_window_function(function: Any) -> None:
    """See that a program gave a window function.

    Raises
    ------
    GraphError
        It is of another kind.
    """
    if function is not None and not isinstance(function, _KINDS):
        raise GraphError(
            f"{type(function).__name__} is no window function; subclass WindowFunction or "
            "ProcessWindowFunction, for window_all AllWindowFunction or ProcessAllWindowFunction"
        )
