"""The jobs of an earlier try of a task, or of another task with the same key: what they have come to.

Never decides what is submitted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from yarnflow.airflow.hooks.documents import LATEST, EndedJob
from yarnflow.airflow.hooks.errors import JobNotSuccessful, YarnflowTaskError
from yarnflow.airflow.hooks.yarnflow import YarnflowHook
from yarnflow.airflow.operators.record import Record
from yarnflow.core.states import JobStatus

#: between two looks whether a job that is being ended has ended
_LOOK_AGAIN_S: Final = 1.0
#: a job that an earlier try has stopped with a savepoint ends within that, or is followed again
_STOPS_WITHIN_S: Final = 60.0


class Came(Enum):
    """To what the jobs of an earlier try have come."""

    #: all have FINISHED
    TO_ITS_END = auto()
    #: they live
    SO_FAR = auto()
    #: there is another submit
    TO_NOTHING = auto()


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of the jobs of an earlier try."""

    came: Came
    #: what one that was stopped has left to start from: a path, or :data:`LATEST`; empty = nothing has
    left: str = ""


class EarlierJobs:
    """Looks at jobs.

    Parameters
    ----------
    hook : YarnflowHook
    log : Logger
        The task's.
    check_goes_on : callable
        Raises an error when the task was ended meanwhile.
    """

    def __init__(self, hook: YarnflowHook, log: Any, check_goes_on: Callable[[], None]) -> None:
        self._hook = hook
        self._log = log
        self._check_goes_on = check_goes_on

    def look_at(self, record: Record, restore: str, *, may_be_stopped: bool) -> Look:
        """What the jobs of a try have come to.

        Parameters
        ----------
        restore : str
            What the task says that a submit starts from; empty = nothing.
        may_be_stopped : bool
            The end of a try stops them with a savepoint.

        Raises
        ------
        YarnflowTaskError
            Several jobs were stopped, and a submit starts from one state.
        CommandFailed
            Whoever knows does not answer now.
        """
        for job_id in record.jobs:
            self._hook.runs_in(job_id, record.application_id)
        try:
            found = [self._settled(job_id, record.ending) for job_id in record.jobs]
        except JobNotSuccessful as error:
            self._log.warning("The job of an earlier try: %s", error)
            newest = LATEST if may_be_stopped and len(record.jobs) == 1 else ""
            return Look(Came.TO_NOTHING, record.savepoint or newest)
        told = ", ".join(f"{each.job_id} is {each.status.value}" for each in found)
        if all(each.is_done for each in found):
            self._log.info("An earlier try has had this done: %s.", told)
            return Look(Came.TO_ITS_END)
        stopped = [each.job_id for each in found if each.left]
        if len(found) > 1 and stopped and not restore and all(each.over for each in found):
            raise stopped_together(stopped)
        if any(each.over and each.status is not JobStatus.FINISHED for each in found):
            self._log.info("The job of an earlier try did not end well, there is another submit: %s.", told)
            # complete, before the job was canceled all the same
            was_canceled = all(each.status is JobStatus.CANCELED for each in found)
            return Look(Came.TO_NOTHING, record.savepoint if record.ending and was_canceled else "")
        if not all(each.over for each in found):
            self._log.info("An earlier try has submitted this; following it: %s.", told)
            return Look(Came.SO_FAR)
        self._log.info("The end of an earlier try has stopped its job, so there is another submit: %s.", told)
        return Look(Came.TO_NOTHING, found[0].left)

    def is_over(self, job_id: str) -> bool:
        """Whether a job that was found was being canceled, or has failed by now: its key is free then."""
        try:
            found = self._settled(job_id)
        except JobNotSuccessful:
            return True
        except YarnflowTaskError as error:
            self._log.warning("How job %s is cannot be asked now: %s", job_id, error)
            return False
        return found.over and found.status is not JobStatus.FINISHED

    def _settled(self, job_id: str, is_stopped: bool = False) -> EndedJob:
        """How a job is; of one that is being canceled, or that an earlier try stops, its end."""
        give_up_s = time.monotonic() + _STOPS_WITHIN_S
        told = False
        while True:
            self._check_goes_on()
            found = self._hook.state(job_id)
            stops = is_stopped and not found.over and time.monotonic() < give_up_s
            if found.status is not JobStatus.CANCELLING and not stops:
                return found
            if not told:
                self._log.info("Job %s is being ended; waiting for that.", job_id)
                told = True
            time.sleep(_LOOK_AGAIN_S)


def stopped_together(job_ids: Iterable[str]) -> YarnflowTaskError:
    """That jobs of a program with several were stopped: no state is that of all of them."""
    return YarnflowTaskError(
        f"the end of an earlier try has stopped {' '.join(job_ids)} of a program with several jobs, and a "
        "submit starts from one state; when none of its jobs runs, say restore='none' to begin anew"
    )
