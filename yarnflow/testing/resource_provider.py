"""TaskManagers that exist when a test says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from yarnflow.core.resources.provider import ProviderState, WorkerExit


@dataclass
class FakeResourceProvider:
    """:class:`~yarnflow.core.ports.ResourceProvider` without TaskManagers.

    :meth:`end`, :meth:`grant` and :meth:`answer` say what has happened to them.

    Attributes
    ----------
    requests, cancels, released : list
        What was asked for with each call.
    calls : list of tuple
        The same, in one order: ``request``, ``cancel`` or ``release`` and the argument.
    withdrawn : int, optional
        The answer to cancels; None = not known before :meth:`answer`.
    """

    replaces_workers: bool = False
    max_workers: int | None = None
    requests: list[int] = field(default_factory=list)
    cancels: list[int] = field(default_factory=list)
    released: list[str] = field(default_factory=list)
    calls: list[tuple[str, int | str]] = field(default_factory=list)
    withdrawn: int | None = None
    _exit_listeners: list[Callable[[WorkerExit], None]] = field(default_factory=list)
    _cancel_listeners: list[Callable[[int, int], None]] = field(default_factory=list)
    _state_listeners: list[Callable[[ProviderState], None]] = field(default_factory=list)

    @property
    def requested(self) -> int:
        """Workers asked for so far."""
        return sum(self.requests)

    def request_workers(self, count: int) -> None:
        """Add to :attr:`requests`."""
        self.requests.append(count)
        self.calls.append(("request", count))

    def cancel_requests(self, count: int) -> int | None:
        """Add to :attr:`cancels` and answer :attr:`withdrawn`."""
        self.cancels.append(count)
        self.calls.append(("cancel", count))
        return self.withdrawn

    def release_worker(self, worker_id: str) -> None:
        """Add to :attr:`released`."""
        self.released.append(worker_id)
        self.calls.append(("release", worker_id))

    def on_worker_exit(self, listener: Callable[[WorkerExit], None]) -> None:
        """Call ``listener`` with each :meth:`end`."""
        self._exit_listeners.append(listener)

    def on_requests_canceled(self, listener: Callable[[int, int], None]) -> None:
        """Call ``listener`` with each :meth:`answer`."""
        self._cancel_listeners.append(listener)

    def on_state(self, listener: Callable[[ProviderState], None]) -> None:
        """Call ``listener`` with each :meth:`grant`."""
        self._state_listeners.append(listener)

    def end(
        self, worker_id: str, exit_status: int | None, diagnostics: str = "", released: bool = False
    ) -> None:
        """The process of ``worker_id`` ends."""
        for listener in self._exit_listeners:
            listener(WorkerExit(worker_id, exit_status, diagnostics, released))

    def grant(self, *worker_ids: str, ungranted: int = 0, message: str = "") -> None:
        """These workers exist now, and ``ungranted`` requests are open."""
        for listener in self._state_listeners:
            listener(ProviderState(ungranted, message, worker_ids))

    def answer(self, withdrawn: int) -> None:
        """Of the last cancel so many requests were withdrawn."""
        for listener in self._cancel_listeners:
            listener(self.cancels[-1], withdrawn)
