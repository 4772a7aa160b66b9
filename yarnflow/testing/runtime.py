"""A clock that only tests move, mailboxes without threads, effects without pools."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from yarnflow.errors import YarnflowError
from yarnflow.runtime.mailbox import Effects, Mailbox, Work

T = TypeVar("T")


class ManualClock:
    """Both clocks of :class:`yarnflow.core.ports.Clock`, moved by the test alone."""

    def __init__(self, now_ms: int = 1_000_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return self._now_ms

    def monotonic_ms(self) -> int:
        """Milliseconds of the same clock."""
        return self._now_ms

    def advance(self, ms: int) -> None:
        """Let ``ms`` milliseconds pass; run the mailboxes afterwards."""
        self._now_ms += ms

    def set_to(self, now_ms: int) -> None:
        """Jump to a time; it may be an earlier one, as when somebody sets a machine's clock."""
        self._now_ms = now_ms


class InlineMailbox(Mailbox):
    """Runs in the test's thread, when the test says so; calls are answered at once."""

    def start(self) -> None:
        """No thread."""

    def call(self, action: Callable[[], T], timeout_ms: int | None) -> T:
        """Run what is due, then ``action``, in the calling thread."""
        if timeout_ms is not None:
            self.assert_may_run()
        self.run_pending()
        return action()


class InlineEffects(Effects):
    """Performs effects at once, in the calling thread; the results are still posted."""

    def perform(
        self,
        mailbox: Mailbox,
        effect: Callable[[], T],
        on_success: Callable[[T], None],
        on_failure: Callable[[YarnflowError], None],
        work: Work = Work.CALL,
        target: str = "",
    ) -> None:
        """Run ``effect`` now and post its end."""
        try:
            result = effect()
        except YarnflowError as error:
            failure = error
            mailbox.post(lambda: on_failure(failure))
        else:
            mailbox.post(lambda: on_success(result))
