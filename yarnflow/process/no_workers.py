"""A cluster whose TaskManagers are started by somebody else."""

from __future__ import annotations

from yarnflow.core.ports import CancelListener, ProviderStateListener, WorkerExitListener


class NoResourceProvider:
    """Standalone: TaskManagers come when somebody starts them."""

    @property
    def max_workers(self) -> int | None:
        """Whoever starts them may start any number."""
        return None

    @property
    def replaces_workers(self) -> bool:
        """Nobody does, as far as the JobManager knows."""
        return False

    def request_workers(self, count: int) -> None:
        """Nobody to ask."""

    def cancel_requests(self, count: int) -> int:
        """Nobody was asked, so nobody will come."""
        return count

    def release_worker(self, worker_id: str) -> None:
        """Not ours to end."""

    def on_worker_exit(self, listener: WorkerExitListener) -> None:
        """No worker is known, so none is ever reported."""

    def on_requests_canceled(self, listener: CancelListener) -> None:
        """The answer is known at once."""

    def on_state(self, listener: ProviderStateListener) -> None:
        """Nothing is ever granted."""
