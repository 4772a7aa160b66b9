"""The elements that a job collects, as its program reads them.

A thread asks for pages ahead of the program, so that an interrupt never breaks into a call, and goes on
asking while the program is slow: that is how the JobManager knows that somebody reads (see
``client.heartbeat.timeout``).  Never decides what becomes of the job, except that closing cancels it.

Flink counterparts: ``CollectResultFetcher``, ``CollectResultIterator``.
"""

from __future__ import annotations

import io
import pickle
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final

from yarnflow.client.cluster import JobCluster
from yarnflow.core.collect.parts import CollectedPage
from yarnflow.core.ids import JobId
from yarnflow.core.messages import JobDetails
from yarnflow.errors import HaError, InternalError, RpcTimeout, RpcUnavailable, UserCodeError, YarnflowError

#: a long poll returns after this time at the latest
POLL_MS: Final = 5_000
#: pages that wait for the program
PAGES_AHEAD: Final = 2
#: between two calls while the program is slow; ``client.heartbeat.timeout`` may be no shorter than three
_PRESENT_S: Final = 10.0
_RETRY_S: Final = 0.2


class PageReader:
    """Reads pages in a thread of its own until the job's end, an error, or :meth:`stop`.

    Parameters
    ----------
    cluster, job_id
        Which job.
    timeout_ms : int
        How long a cluster that does not answer is tried again (``client.timeout``).
    """

    def __init__(self, cluster: JobCluster, job_id: JobId, timeout_ms: int) -> None:
        self._cluster = cluster
        self._job_id = job_id
        self._timeout_ms = timeout_ms
        self._changed = threading.Condition()
        self._pages: deque[CollectedPage] = deque()
        self._end: YarnflowError | bool = False
        self._stopped = False
        self._thread = threading.Thread(target=self._read, name="collect", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Read no more; a call under way is not waited for.  Idempotent."""
        with self._changed:
            self._stopped = True
            self._pages.clear()
            self._changed.notify_all()

    @property
    def ended(self) -> bool:
        """The job has ended."""
        with self._changed:
            return self._end is True

    @property
    def failed(self) -> bool:
        """No further page can be had, although the job may go on."""
        with self._changed:
            return isinstance(self._end, YarnflowError)

    def next_page(self) -> CollectedPage | None:
        """The next elements; None when there are no more.

        Raises
        ------
        YarnflowError
            They cannot be had.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._pages or self._end or self._stopped)
            if self._pages:
                page = self._pages.popleft()
                self._changed.notify_all()
                return page
            if isinstance(self._end, YarnflowError):
                raise self._end
            return None

    def _read(self) -> None:
        try:
            self._read_pages()
        except Exception as error:
            # or the program would wait for ever
            end = InternalError(
                f"the elements of job {self._job_id} cannot be read any more: {type(error).__name__}: "
                f"{error}; close the iterator, which cancels the job, and report the traceback above"
            )
            end.__cause__ = error
            self._finish(end)

    def _read_pages(self) -> None:
        position = ""
        answered_s = time.monotonic()
        while not self._stopped:
            try:
                page = self._cluster.gateway().await_collected(self._job_id, position, POLL_MS)
            except YarnflowError as error:
                end = self._end_after(error, answered_s)
                if end is not None:
                    self._finish(end)
                    return
                self._pause(_RETRY_S)
                continue
            answered_s = time.monotonic()
            if page.payloads:
                self._hand_over(page, position)
                position = page.position
            elif page.ended:
                self._finish(True)
                return

    def _hand_over(self, page: CollectedPage, position: str) -> None:
        """Put a page before the program, and be heard while there is no room for it."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: len(self._pages) < PAGES_AHEAD or self._stopped, _PRESENT_S)
                if self._stopped:
                    return
                if len(self._pages) < PAGES_AHEAD:
                    self._pages.append(page)
                    self._changed.notify_all()
                    return
            try:
                # the same page again; what it acknowledges has been acknowledged before
                self._cluster.gateway().await_collected(self._job_id, position, 0)
            except YarnflowError:
                pass  # the next call that matters will meet it again

    def _end_after(self, error: YarnflowError, answered_s: float) -> YarnflowError | bool | None:
        """What a call without an answer means: True = the job has ended, None = try again."""
        if self._cluster.final_details(self._job_id) is not None:
            # a job that lived with its cluster has ended with it
            return True
        failure = self._cluster.failure()
        passing = error.retryable or isinstance(error, (RpcUnavailable, RpcTimeout, HaError))
        if failure is None and passing and (time.monotonic() - answered_s) * 1000 < self._timeout_ms:
            return None
        return failure or error

    def _finish(self, end: YarnflowError | bool) -> None:
        with self._changed:
            self._end = end
            self._changed.notify_all()

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopped, seconds)


class CollectedElements(Iterator[Any]):
    """Elements in order, each once; the end of the job, if it was no good one, is raised.

    Parameters
    ----------
    reader : PageReader
        Not started.
    await_result : callable
        Waits for the job's end; raises the job's error.
    cancel : callable
        Ends a job that nobody reads any more, and returns when it has ended.
    """

    def __init__(
        self,
        reader: PageReader,
        await_result: Callable[[], JobDetails],
        cancel: Callable[[], None],
    ) -> None:
        self._reader = reader
        self._await_result = await_result
        self._cancel = cancel
        #: pickled lists that are not begun
        self._payloads: deque[bytes] = deque()
        self._current: Iterator[Any] = iter(())
        #: no element comes any more
        self._over = False
        self.closed = False
        # what nobody can read any more must not seem to be read
        weakref.finalize(self, reader.stop)
        reader.start()

    def __next__(self) -> Any:
        while True:
            for element in self._current:
                return element
            if self.closed or self._over:
                raise StopIteration
            self._turn()

    def close(self) -> None:
        """Cancel the job if it has not ended, and wait for its end; no element comes any more."""
        if self.closed:
            return
        self.closed = True
        self._current = iter(())
        self._payloads = deque()
        self._reader.stop()
        if self._reader.ended:
            return
        try:
            self._cancel()
        except YarnflowError:
            # the program has been told already why there is no answer
            if not self._reader.failed:
                raise

    def _turn(self) -> None:
        """Go on to the next list of elements."""
        # another thread may close meanwhile
        payloads = self._payloads
        if payloads:
            try:
                self._current = iter(_unpickled(payloads[0]))
            except UserCodeError:
                # to go on would leave out elements; and what nobody can read must not seem to be read
                self._over = True
                self._reader.stop()
                raise
            # only now: an interrupt must not leave out elements either
            payloads.popleft()
            return
        page = self._reader.next_page()
        if page is not None:
            payloads.extend(page.payloads)
        elif not self.closed:
            self._over = True
            self._await_result()


class _Unpickler(pickle.Unpickler):
    """Remembers what the pickle asked for."""

    def __init__(self, payload: bytes) -> None:
        super().__init__(io.BytesIO(payload))
        #: full names, in order, each once
        self.found: dict[str, None] = {}
        #: what there was none of; empty = all was found
        self.missing = ""

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        name = self.missing = f"{module_name}.{global_name}"
        found = super().find_class(module_name, global_name)
        self.missing = ""
        self.found[name] = None
        return found


def _unpickled(payload: bytes) -> list[Any]:
    """Elements from the JobManager, by an authenticated wire, which has looked at the driver's seal.

    Raises
    ------
    UserCodeError
        The program cannot make objects of them.
    """
    unpickler = _Unpickler(payload)
    try:
        return list(unpickler.load())
    # anything, as classes say themselves how their objects are made
    except Exception as error:
        if unpickler.missing:
            what = f"there is no {unpickler.missing} in the program"
        else:
            what = f"they are made of {', '.join(unpickler.found) or 'plain values'}"
        raise UserCodeError(
            f"collected elements cannot be unpickled: {what} ({type(error).__name__}: {error}); their "
            "classes must be importable, and the same, where the program runs"
        ) from error
