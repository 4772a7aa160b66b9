"""At which time the micro-batches of a query work, and in which run of the job they were planned.

Decides nothing but that neither changes when a batch is done again, by whichever driver: its sinks have
recognised it by its number, and leave out what they have written before.  So timers must not fire in it
that did not fire the first time, nor streams be idle that were not.  Flink needs no such thing: it does
the elements behind a checkpoint again with another clock, because none of their results was committed.
"""

from __future__ import annotations

import json
import logging
from typing import Final

from yarnflow.operators.task.micro_batch import MicroBatch
from yarnflow.spark.checkpoints.positions import planned_ms
from yarnflow.spark.hadoop_files import HadoopFiles

logger = logging.getLogger(__name__)

#: in a query's directory: first batch and beginning (ms since the epoch) of the last runs
RUNS_FILE: Final = "runs"


class BatchTimes:
    """Of one query.

    Parameters
    ----------
    files : HadoopFiles
    directory : str
        The query's.
    """

    def __init__(self, files: HadoopFiles, directory: str) -> None:
        self._files = files
        self._directory = directory
        self._runs: tuple[tuple[int, int], ...] = ()

    def begin_run(self, planned: int, now_ms: int) -> None:
        """Note that the batches behind one are planned in a new run; those up to it keep theirs.

        Parameters
        ----------
        planned : int
            The last batch that an earlier run has planned; -1 = none.
        now_ms : int
            Tells the run from all others.
        """
        path = f"{self._directory}/{RUNS_FILE}"
        before = self._before(path) if self._files.exists(path) else []
        # at most the last planned batch is done again
        kept = [(first, began_ms) for first, began_ms in before if first <= planned][-1:]
        self._runs = (*kept, (planned + 1, now_ms))
        self._files.write(path, json.dumps(self._runs).encode())

    def _before(self, path: str) -> list[tuple[int, int]]:
        try:
            return [(int(first), int(began_ms)) for first, began_ms in json.loads(self._files.read(path))]
        except (ValueError, TypeError) as error:
            logger.warning(
                "%s is damaged (%s); a batch that is done again takes its run for the first one", path, error
            )
            return []

    def of(self, number: int) -> MicroBatch:
        """What the tasks of a batch are told; Spark has planned it."""
        # the last in their order: a clock may have gone back since
        run_ms = next((began_ms for first, began_ms in reversed(self._runs) if first <= number), 0)
        return MicroBatch(number, planned_ms(self._files, self._directory, number), run_ms)
