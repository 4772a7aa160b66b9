"""A JobMaster as TaskManagers and drivers see it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from yarnflow.core.ids import AllocationId, JobId
from yarnflow.core.messages import DriverPhase, DriverRegistration, DriverReport, ExecutorExited, SlotOffer
from yarnflow.errors import YarnflowError


class FakeJobMaster:
    """:class:`~yarnflow.core.ports.JobMasterGateway` that records its calls; calls may come from any thread.

    Parameters
    ----------
    limit_s : float
        The longest that :meth:`wait` and :meth:`await_phase` wait, unless told otherwise; far above what
        any step of a driver takes.

    Attributes
    ----------
    offers, exits, registrations, reports : list
        What was accepted, in order.
    accepts : bool
        Whether slots that are offered are taken.
    offer_error, exit_error, report_error : YarnflowError, optional
        Raised by :meth:`offer_slots`, :meth:`executor_exited` and :meth:`report` while set.
    register_errors : list of YarnflowError
        Raised one after another by :meth:`register_driver`, before it accepts any.
    before_report : callable
        Called by each :meth:`report` before it is accepted; may raise.
    refused : int
        Reports that were answered with an error.
    """

    def __init__(self, limit_s: float = 20.0) -> None:
        self._limit_s = limit_s
        self._changed = threading.Condition()
        self.offers: list[SlotOffer] = []
        self.exits: list[ExecutorExited] = []
        self.registrations: list[DriverRegistration] = []
        self.reports: list[DriverReport] = []
        self.accepts = True
        self.offer_error: YarnflowError | None = None
        self.exit_error: YarnflowError | None = None
        self.report_error: YarnflowError | None = None
        self.register_errors: list[YarnflowError] = []
        self.refused = 0
        self.before_report: Callable[[], None] = lambda: None

    def offer_slots(self, job_id: JobId, offers: Sequence[SlotOffer]) -> Sequence[AllocationId]:
        """Add to :attr:`offers` and take all or none, as :attr:`accepts` says."""
        with self._changed:
            self._changed.notify_all()
            if self.offer_error is not None:
                raise self.offer_error
            self.offers.extend(offers)
            return [offer.allocation_id for offer in offers] if self.accepts else []

    def executor_exited(self, report: ExecutorExited) -> None:
        """Add to :attr:`exits`."""
        with self._changed:
            self._changed.notify_all()
            if self.exit_error is not None:
                raise self.exit_error
            self.exits.append(report)

    def register_driver(self, registration: DriverRegistration) -> None:
        """Add to :attr:`registrations`, or raise the next of :attr:`register_errors`."""
        with self._changed:
            self._changed.notify_all()
            if self.register_errors:
                raise self.register_errors.pop(0)
            self.registrations.append(registration)

    def report(self, report: DriverReport) -> None:
        """Add to :attr:`reports`, or raise :attr:`report_error`."""
        with self._changed:
            self._changed.notify_all()
            self.before_report()
            if self.report_error is not None:
                self.refused += 1
                raise self.report_error
            self.reports.append(report)

    def wait(self, condition: Callable[[], object], timeout_s: float | None = None) -> None:
        """Wait until calls have made ``condition`` true; fails after ``timeout_s``."""
        with self._changed:
            assert self._changed.wait_for(condition, timeout_s or self._limit_s), self.reports[-3:]

    def await_phase(
        self, attempt: int, *phases: DriverPhase, timeout_s: float | None = None
    ) -> DriverReport:
        """Wait for the first report of a deployment in one of ``phases``."""

        def found() -> list[DriverReport]:
            return [r for r in self.reports if r.attempt == attempt and r.phase in phases]

        self.wait(found, timeout_s)
        return found()[0]
