"""Receives the messages of a queue in a thread of the driver.

Decides when to connect again and when to tell the broker what is done; what is new and what is done is
decided by :mod:`yarnflow.spark.connectors.rabbitmq.deliveries`.  Reads no further ahead than the prefetch
count allows, which holds the broker back while a micro-batch takes its time.  Flink counterpart:
``RMQSource``.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from yarnflow.errors import ServerUnavailable, YarnflowError
from yarnflow.graph.connectors.rabbitmq import RabbitMqSource
from yarnflow.spark.checkpoints.job import Fence
from yarnflow.spark.connectors.rabbitmq.deliveries import Deliveries, Message
from yarnflow.spark.connectors.rabbitmq.parts import PartFiles, ids_of

logger = logging.getLogger(__name__)

#: waiting messages become a part when they have so many bytes, although no batch is planned
_PART_BYTES: Final = 8 * 1024 * 1024
#: of the parts of one micro-batch, unless one part alone has more: they travel with the batch's plan
MAX_BATCH_BYTES: Final = 48 * 1024 * 1024
_RECEIVE_S: Final = 0.05
#: between two looks which batch is committed
_COMMIT_LOOK_S: Final = 0.25


class Inbox(Protocol):
    """A subscription; see :class:`~yarnflow.spark.connectors.rabbitmq.broker.Subscription`."""

    def receive(self, wait_s: float) -> list[Message]: ...

    def acknowledge(self, tag: int) -> None: ...

    def close(self) -> None: ...


class Receiver:
    """One queue's; implements :class:`~yarnflow.spark.connectors.feeds.server.Feed`.

    Parameters
    ----------
    source : RabbitMqSource
    parts : PartFiles
    subscribe : callable
        Connects; raises ServerUnavailable or ServerError.
    committed : callable
        Number of the last part of which all queries have committed the batch.
    fence : callable
        Raises when this driver may not write.
    """

    def __init__(
        self,
        source: RabbitMqSource,
        parts: PartFiles,
        subscribe: Callable[[], Inbox],
        committed: Callable[[], int],
        fence: Fence,
    ) -> None:
        self._source = source
        self._parts = parts
        self._subscribe = subscribe
        self._committed = committed
        self._fence = fence
        self._deliveries = Deliveries(0)
        #: bytes of parts that this driver has written
        self._sizes: dict[int, int] = {}
        #: there are files of
        self._there: set[int] = set()
        self._kept_ids: dict[str, int] = {}
        self._lock = threading.Lock()
        #: how many want that no file is removed
        self._holds = 0
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: Exception | None = None

    def open(self, planned: int) -> None:
        """Look what an earlier driver has left, connect, and begin to receive.

        Parameters
        ----------
        planned : int
            Number of the last part in a batch that Spark has planned.

        Raises
        ------
        ServerUnavailable
            The broker does not answer.
        ServerError
            It refuses what it is asked for.
        LeaseLost
            This driver may not write.
        """
        self._fence()
        returning = self._parts.read_returning()
        self._kept_ids = dict(returning)
        for number in self._parts.numbers():
            if number > planned:
                # its messages were not acknowledged: they come back
                self._parts.delete(number)
                continue
            self._there.add(number)
            if self._source.use_correlation_id:
                returning.update(dict.fromkeys(ids_of(self._parts.read(number)), number))
        self._deliveries = Deliveries(planned, self._source.use_correlation_id, returning)
        self._keep_ids()
        inbox = self._subscribe()
        self._thread = threading.Thread(target=self._run, args=(inbox,), name="rabbitmq", daemon=True)
        self._thread.start()

    # --- for Spark ----------------------------------------------------------------

    def latest(self, start: int) -> int:
        """Fix what waits as a part; the last one of a batch behind ``start``."""
        with self._lock:
            # looked at last: the thread may have failed while this one waited
            self.check()
            self._close_part()
            last, size = start, 0
            while last < self._deliveries.last_part:
                size += self._sizes.get(last + 1, 0)
                if size > MAX_BATCH_BYTES and last > start:
                    break
                last += 1
            return last

    def parts(self, start: int, end: int) -> list[bytes]:
        """What the parts behind ``start`` up to ``end`` hold."""
        return [self._parts.read(number) for number in range(start + 1, end + 1)]

    # --- for the job --------------------------------------------------------------

    def check(self) -> None:
        """Raises what has ended the receiving."""
        if self._failure is not None:
            raise self._failure

    def hold(self) -> None:
        """Remove no part until :meth:`release`: the job's files are being copied; may be called again."""
        with self._lock:
            self._holds += 1

    def release(self) -> None:
        """Take one :meth:`hold` back."""
        with self._lock:
            self._holds -= 1

    def close(self) -> None:
        """Acknowledge what is committed and disconnect; what is not goes back to the queue."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()

    # --- the thread ---------------------------------------------------------------

    def _run(self, inbox: Inbox) -> None:
        try:
            while True:
                try:
                    self._receive(inbox)
                    return
                except ServerUnavailable as error:
                    if not self._source.server.automatic_recovery:
                        raise
                    logger.warning("Lost the connection: %s", error)
                finally:
                    inbox.close()
                with self._lock:
                    self._deliveries.connection_lost()
                    self._fence()
                    self._keep_ids()
                found = self._connect_again()
                if found is None:
                    return
                inbox = found
        except YarnflowError as error:
            self._failure = error
        except Exception as error:
            # not the broker: its errors are told as ours
            logger.exception("Receiving of %s failed", self._source.where)
            self._failure = error

    def _connect_again(self) -> Inbox | None:
        """A new subscription, whenever the broker is back; None = not any more."""
        wait_s = self._source.server.recovery_interval_ms / 1000
        while not self._closing.wait(wait_s):
            try:
                inbox = self._subscribe()
                logger.info("Connected to %s again.", self._source.where)
                return inbox
            except ServerUnavailable as error:
                logger.warning("Trying again in %g s: %s", wait_s, error)
        return None

    def _receive(self, inbox: Inbox) -> None:
        looked = time.monotonic()
        while not self._closing.is_set():
            messages = inbox.receive(_RECEIVE_S)
            with self._lock:
                for message in messages:
                    self._deliveries.receive(message)
                if self._deliveries.waiting_bytes >= _PART_BYTES:
                    self._close_part()
            if time.monotonic() - looked >= _COMMIT_LOOK_S:
                self._acknowledge(inbox)
                looked = time.monotonic()
        self._acknowledge(inbox)

    def _close_part(self) -> None:
        """Within the lock.  A number that Spark has heard of has its file, so the file comes first."""
        if self._deliveries.waiting:
            number = self._deliveries.last_part + 1
            try:
                self._fence()
                self._sizes[number] = self._parts.write(number, self._deliveries.waiting)
            except Exception as error:
                self._failure = error
                raise
            self._there.add(number)
        self._deliveries.close_part()

    def _acknowledge(self, inbox: Inbox) -> None:
        with self._lock:
            if not self._there and not self._deliveries.unacknowledged:
                return
        committed = self._committed()
        with self._lock:
            due = self._deliveries.due(committed)
            if due is not None:
                self._fence()
                inbox.acknowledge(due.tag)
                self._deliveries.acknowledged(due)
            if self._holds:
                return
            done = [number for number in self._there if number <= committed]
            if done:
                self._fence()
                # first what is known of their messages
                self._keep_ids()
            for number in done:
                self._parts.delete(number)
                self._there.discard(number)
                self._sizes.pop(number, None)

    def _keep_ids(self) -> None:
        ids = self._deliveries.returning
        if ids != self._kept_ids:
            self._parts.write_returning(ids)
            self._kept_ids = ids
