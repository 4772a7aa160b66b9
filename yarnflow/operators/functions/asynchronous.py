"""Functions that wait for something outside, many elements at a time, and when they are tried again.

Times are in ms; names and signatures are PyFlink's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from yarnflow.operators.functions.base import Function

IN = TypeVar("IN")
OUT = TypeVar("OUT")

ResultPredicate = Callable[[list[Any]], bool]
ErrorPredicate = Callable[[Exception], bool]


class AsyncFunction(Function, Generic[IN, OUT]):
    """Waits for something outside, for many elements at once."""

    @abstractmethod
    async def async_invoke(self, value: IN) -> list[OUT]:
        """The elements to put in place of ``value``; what it raises ends the job, or is tried again."""

    def timeout(self, value: IN) -> list[OUT]:
        """The elements to put in place of one that took too long; raises TimeoutError by default."""
        raise TimeoutError(f"no result in time for element {value!r}")


class AsyncRetryPredicate(ABC, Generic[OUT]):
    """What is tried again."""

    @abstractmethod
    def result_predicate(self) -> ResultPredicate | None:
        """Tells of a result whether to try again; None: no result is tried again."""

    @abstractmethod
    def exception_predicate(self) -> ErrorPredicate | None:
        """Tells of an exception whether to try again; None: no exception is tried again."""


class AsyncRetryStrategy(ABC, Generic[OUT]):
    """What is tried again, how often and how soon."""

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Whether to try once more after so many attempts."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """How long to wait after so many attempts."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        """What is tried again."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Nothing is tried again."""
        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ErrorPredicate | None,
    ) -> AsyncRetryStrategy[Any]:
        """Always wait as long."""
        return FixedDelayRetryStrategy(
            max_attempts, backoff_time_millis, result_predicate, exception_predicate
        )

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate | None,
        exception_predicate: ErrorPredicate | None,
    ) -> AsyncRetryStrategy[Any]:
        """Wait longer each time, up to a limit."""
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts, initial_delay, max_retry_delay, multiplier, result_predicate, exception_predicate
        )


class RetryPredicate(AsyncRetryPredicate[OUT]):
    """Two predicates in one object."""

    def __init__(
        self, result_predicate: ResultPredicate | None, exception_predicate: ErrorPredicate | None
    ) -> None:
        self._result_predicate = result_predicate
        self._exception_predicate = exception_predicate

    def result_predicate(self) -> ResultPredicate | None:
        return self._result_predicate

    def exception_predicate(self) -> ErrorPredicate | None:
        return self._exception_predicate


class NoRetryStrategy(AsyncRetryStrategy[OUT]):
    """Nothing is tried again."""

    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return RetryPredicate(None, None)


class FixedDelayRetryStrategy(AsyncRetryStrategy[OUT]):
    """Waits as long each time."""

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ErrorPredicate | None,
    ) -> None:
        _require_positive(max_attempts=max_attempts, backoff_time_millis=backoff_time_millis)
        self._max_attempts = max_attempts
        self._backoff_time_millis = backoff_time_millis
        self._predicate: RetryPredicate[OUT] = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return self._backoff_time_millis

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return self._predicate


class ExponentialBackoffDelayRetryStrategy(AsyncRetryStrategy[OUT]):
    """Waits longer each time; knows nothing but the number of attempts, so elements can share it."""

    def __init__(
        self,
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate | None,
        exception_predicate: ErrorPredicate | None,
    ) -> None:
        _require_positive(
            max_attempts=max_attempts,
            initial_delay=initial_delay,
            max_retry_delay=max_retry_delay,
            multiplier=multiplier,
        )
        self._max_attempts = max_attempts
        self._initial_delay = initial_delay
        self._max_retry_delay = max_retry_delay
        self._multiplier = multiplier
        self._predicate: RetryPredicate[OUT] = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        if current_attempts <= 1:
            return self._initial_delay
        delay: float = self._initial_delay
        for _ in range(current_attempts - 1):
            delay = min(int(delay * self._multiplier), self._max_retry_delay)
        return int(delay)

    def get_retry_predicate(self) -> AsyncRetryPredicate[OUT]:
        return self._predicate


NO_RETRY_STRATEGY: AsyncRetryStrategy[Any] = NoRetryStrategy()


def empty_result_predicate(result: list[Any] | None) -> bool:
    """There is no result."""
    return result is None or len(result) == 0


def has_exception_predicate(error: BaseException | None) -> bool:
    """Something was raised."""
    return error is not None


def exception_type_predicate(error: BaseException, expected_error_type: type[BaseException]) -> bool:
    """An exception of a type was raised."""
    return isinstance(error, expected_error_type)


def _require_positive(**numbers: float) -> None:
    for name, number in numbers.items():
        if not number > 0:
            raise ValueError(f"{name} of a retry strategy must be greater than zero, not {number}")
