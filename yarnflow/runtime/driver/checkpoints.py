"""Orders for checkpoints and savepoints in a driver, and what became of them.

An order is carried out in a thread of its own, as a savepoint may copy for minutes; one after the
other, as they all look at the same queries.  Its outcome is kept and goes out with every report, so
that a lost report, or a new leader, costs nothing.  Never decides whether a checkpoint is wanted:
that is the JobMaster's coordinator.  Flink counterpart: a task's side of ``CheckpointCoordinator``.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from yarnflow.core.checkpoint.messages import AfterSavepoint, CheckpointOrder, CheckpointOutcome
from yarnflow.core.ports import Clock
from yarnflow.errors import InternalError, YarnflowError
from yarnflow.runtime.driver.services import RunningProgram

logger = logging.getLogger(__name__)

#: outcomes that are repeated; the coordinator has one order at a time, so these are minutes
_OUTCOMES_KEPT: Final = 10
_POLL_S: Final = 0.05


class DriverCheckpoints:
    """All orders one driver was given.

    Parameters
    ----------
    on_outcome : callable
        Called from any thread when there is a new outcome.
    clock : Clock
    """

    def __init__(self, on_outcome: Callable[[], None], clock: Clock) -> None:
        self._on_outcome = on_outcome
        self._clock = clock
        self._changed = threading.Condition()
        self._one_at_a_time = threading.Lock()
        # guarded by _changed
        #: ids rise, so whatever is not above it was given before
        self._newest_id = 0
        #: requests that have an order: another master does not know of those under the last one
        self._requests: set[str] = set()
        self._under_way: set[int] = set()
        self._outcomes: list[CheckpointOutcome] = []

    def take(self, order: CheckpointOrder, program: RunningProgram | None, why_not: str = "") -> None:
        """Begin to carry an order out; returns at once.  Idempotent by id and by request.

        Parameters
        ----------
        program : RunningProgram, optional
            What runs now; without one the order fails.
        why_not : str
            Why nothing runs, one line.
        """
        with self._changed:
            if order.checkpoint_id <= self._newest_id:
                return
            self._newest_id = order.checkpoint_id
            if order.request_id in self._requests:  # its outcome names the request
                return
            if order.request_id:
                self._requests.add(order.request_id)
            self._under_way.add(order.checkpoint_id)
        if program is None:
            self._ended(order, CheckpointOutcome(order.checkpoint_id, failure=why_not))
            return
        threading.Thread(
            target=self._carry_out,
            args=(order, program),
            name=f"checkpoint-{order.checkpoint_id}",
            daemon=True,
        ).start()

    def goes_on(self) -> None:
        """Another attempt begins: no order of an earlier one has ended the job."""
        with self._changed:
            self._outcomes = [replace(each, after=AfterSavepoint.CONTINUE) for each in self._outcomes]

    def outcomes(self) -> tuple[CheckpointOutcome, ...]:
        """Of the last orders, oldest first."""
        with self._changed:
            return tuple(self._outcomes)

    def await_none(self, timeout_ms: int, given_up: Callable[[], bool]) -> None:
        """Block until no order is under way, ``given_up()`` (looked at often) or the time is over."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while not given_up():
            with self._changed:
                if not self._under_way:
                    return
                if self._clock.monotonic_ms() >= deadline_ms:
                    logger.warning("Checkpoints %s are not waited for any longer.", sorted(self._under_way))
                    return
                self._changed.wait(_POLL_S)

    def _carry_out(self, order: CheckpointOrder, program: RunningProgram) -> None:
        logger.info("%s %d: begun.", order.kind.value.capitalize(), order.checkpoint_id)
        try:
            with self._one_at_a_time:
                outcome = program.take_checkpoint(order)
        except YarnflowError as error:
            outcome = CheckpointOutcome(order.checkpoint_id, failure=error.message)
        except Exception as raised:
            logger.exception("Checkpoint %d failed in an unforeseen way", order.checkpoint_id)
            failure = InternalError(f"{type(raised).__name__}: {raised}; see the driver's log")
            outcome = CheckpointOutcome(order.checkpoint_id, failure=failure.message)
        self._ended(order, outcome)

    def _ended(self, order: CheckpointOrder, outcome: CheckpointOutcome) -> None:
        outcome = replace(
            outcome,
            request_id=order.request_id,
            kind=order.kind,
            target=order.target,
            after=order.after,
        )
        logger.info("Checkpoint %d: %s.", outcome.checkpoint_id, outcome.failure or "done")
        with self._changed:
            self._under_way.discard(outcome.checkpoint_id)
            self._outcomes = [*self._outcomes, outcome][-_OUTCOMES_KEPT:]
            self._changed.notify_all()
        self._on_outcome()
