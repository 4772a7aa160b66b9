"""Orders to a job's driver to take checkpoints and savepoints, and where the savepoints go.

An order is given until the driver has it or nobody wants it any more; its outcome comes with the
driver's reports.  Used in the JobMaster's mailbox only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from yarnflow.config.hadoop.paths import with_file_system
from yarnflow.core.checkpoint.manifest import savepoint_name
from yarnflow.core.checkpoint.messages import CheckpointKind, CheckpointOrder, CheckpointRequest
from yarnflow.core.messages import JobSubmission
from yarnflow.errors import CheckpointError, RpcError, YarnflowError
from yarnflow.runtime.jobmaster.driver_calls import OnFailure
from yarnflow.runtime.jobmaster.services import JobMasterServices, JobMasterSettings
from yarnflow.runtime.mailbox import Mailbox

#: pause before an order is given again to a driver that did not answer
_RETRY_MS: Final = 1_000
_SAVEPOINT_DIR_KEY: Final = "execution.checkpointing.savepoint-dir"

GiveOrder = Callable[[CheckpointOrder, OnFailure], None]


class CheckpointOrders:
    """One job's orders; one is under way at a time.

    Parameters
    ----------
    submission, settings, services, mailbox
        The JobMaster's.
    give : callable
        Hands an order to the job's driver.
    """

    def __init__(
        self,
        submission: JobSubmission,
        settings: JobMasterSettings,
        services: JobMasterServices,
        mailbox: Mailbox,
        give: GiveOrder,
    ) -> None:
        self._submission = submission
        self._settings = settings
        self._services = services
        self._mailbox = mailbox
        self._give_to_driver = give
        #: parent directory of each savepoint that was asked for, by request
        self._parents: dict[str, str] = {}

    def admit(self, request: CheckpointRequest) -> None:
        """Settle where a savepoint will be.

        Raises
        ------
        CheckpointError
            Nobody says where.
        """
        if request.kind is not CheckpointKind.SAVEPOINT:
            return
        parent = request.target_dir or self._settings.savepoint_dir
        if not parent:
            raise CheckpointError(
                f"no directory for a savepoint of job {self._submission.name}; name one, or set "
                f"{_SAVEPOINT_DIR_KEY}"
            )
        self._parents[request.request_id] = with_file_system(parent).rstrip("/")

    def forget(self, request_id: str) -> None:
        """The request is over."""
        self._parents.pop(request_id, None)

    def give(
        self,
        order: CheckpointOrder,
        request_id: str,
        is_wanted: Callable[[], bool],
        on_refused: Callable[[YarnflowError], None],
    ) -> None:
        """Hand an order to the driver.

        Parameters
        ----------
        order : CheckpointOrder
            Without a target; a savepoint gets one.
        request_id : str
            The request it is for.
        is_wanted : callable
            Whether it is still to be given.
        on_refused : callable
            The driver does not take it.
        """
        if order.kind is CheckpointKind.SAVEPOINT:
            name = savepoint_name(self._submission.job_id, self._services.new_id()[:12])
            order = replace(order, target=f"{self._parents[request_id]}/{name}")
        self._give(order, is_wanted, on_refused)

    def _give(
        self,
        order: CheckpointOrder,
        is_wanted: Callable[[], bool],
        on_refused: Callable[[YarnflowError], None],
    ) -> None:
        def failed(error: YarnflowError) -> None:
            if isinstance(error, RpcError) and error.retryable:  # it may have it all the same
                self._mailbox.schedule(_RETRY_MS, lambda: self._give(order, is_wanted, on_refused))
            else:
                on_refused(error)

        if is_wanted():
            self._give_to_driver(order, failed)
