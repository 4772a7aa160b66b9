"""Named children and what happens when one ends.

A supervisor starts children, starts those again whose policy says so, and ends all of them when
it stops.  Children die with it in any case (:mod:`yarnflow.process.spawn`).  It knows nothing of
jobs; :mod:`yarnflow.process.pools` and :mod:`yarnflow.process.cluster` say what to start.

Flink has no counterpart: its processes are restarted by YARN, Kubernetes or nobody.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from yarnflow.core.ports import Clock
from yarnflow.errors import YarnflowError
from yarnflow.process.clock import SystemClock
from yarnflow.process.spawn import ProcessSpec, spawn

logger: Final = logging.getLogger(__name__)

#: how long the end of a process that was killed is waited for
_KILLED_S: Final = 10.0


class Child(Protocol):
    """What a supervisor needs of a child; see :class:`yarnflow.process.spawn.ChildProcess`."""

    @property
    def spec(self) -> ProcessSpec: ...

    @property
    def pid(self) -> int: ...

    @property
    def alive(self) -> bool: ...

    def on_exit(self, listener: Callable[[int], None]) -> None: ...

    def wait(self, timeout_s: float | None = None) -> int | None: ...

    def write_line(self, line: str) -> bool: ...

    def terminate_group(self, grace_s: float = 5.0) -> int | None: ...

    def kill_group(self) -> None: ...

    def output_tail(self, lines: int = 20) -> str: ...


Launch = Callable[[ProcessSpec], Child]
#: run an action after a delay in milliseconds
Schedule = Callable[[int, Callable[[], None]], None]
#: (child, exit status, whether it will be started again)
ExitObserver = Callable[[Child, int, bool], None]


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Whether and when a child that ended is started again.

    The delay starts at ``initial_ms`` and doubles up to ``max_ms``, from ``step_ms`` where the first
    start was at once; a child that lived for ``reset_after_ms`` starts over.
    """

    restart: bool = False
    initial_ms: int = 500
    max_ms: int = 30_000
    reset_after_ms: int = 60_000
    step_ms: int = 500

    def next_delay_ms(self, previous_ms: int | None, lived_ms: int) -> int | None:
        """Delay before the next start; None = leave it.

        Parameters
        ----------
        previous_ms : int or None
            The last delay of this child; None at its first end.
        lived_ms : int
            How long it ran.
        """
        if not self.restart:
            return None
        if previous_ms is None or lived_ms >= self.reset_after_ms:
            return self.initial_ms
        return min(previous_ms * 2 or self.step_ms, self.max_ms)


NEVER: Final = RestartPolicy()


@dataclass
class _Entry:
    make_spec: Callable[[], ProcessSpec]
    policy: RestartPolicy
    observer: ExitObserver | None
    child: Child | None = None
    started_at_ms: int = 0
    delay_ms: int | None = None
    #: somebody has had it ended
    ending: bool = False


def run_later(delay_ms: int, action: Callable[[], None]) -> None:
    """Run ``action`` in a thread of its own after a delay."""
    timer = threading.Timer(delay_ms / 1000, action)
    timer.daemon = True
    timer.start()


class Supervisor:
    """Owner of named children.  All methods may be called from any thread.

    Parameters
    ----------
    launch, schedule, clock
        Replaced in tests.
    """

    def __init__(
        self, launch: Launch = spawn, schedule: Schedule = run_later, clock: Clock | None = None
    ) -> None:
        self._launch = launch
        self._schedule = schedule
        self._clock: Clock = clock or SystemClock()
        self._lock = threading.RLock()
        self._entries: dict[str, _Entry] = {}
        self._stopping = False

    def start(
        self,
        name: str,
        make_spec: Callable[[], ProcessSpec],
        policy: RestartPolicy = NEVER,
        observer: ExitObserver | None = None,
    ) -> Child | None:
        """Start a child under a name.

        Parameters
        ----------
        make_spec : callable
            Called for every start, so that each attempt may have its own log file and ids.
        observer : callable, optional
            Told of every end, from the watcher thread.

        Returns
        -------
        Child or None
            None when the supervisor is stopping already.

        Raises
        ------
        ResourceError
            The first start failed; later ones are retried under the policy.
        """
        entry = _Entry(make_spec, policy, observer)
        with self._lock:
            if self._stopping:
                return None
            if name in self._entries:
                raise ValueError(f"there is a child called {name} already")
            self._entries[name] = entry
            try:
                child = self._start(entry)
            except YarnflowError:
                del self._entries[name]
                raise
        child.on_exit(lambda status: self._exited(name, entry, child, status))
        return child

    def names(self) -> list[str]:
        """Names of all children, including those waiting for their restart."""
        with self._lock:
            return list(self._entries)

    def end(self, name: str, grace_s: float = 0.0) -> None:
        """End a child for good; its observer is told.  Unknown names are ignored."""
        with self._lock:
            entry = self._entries.get(name)
            if entry is None:
                return
            entry.policy = NEVER
            entry.ending = True
            child = entry.child
            if child is None:
                del self._entries[name]
        if child is None:
            return
        if grace_s > 0:
            child.terminate_group(grace_s)
        else:
            child.kill_group()

    def stop(self, grace_s: float = 5.0) -> None:
        """End all children: TERM to all at once, KILL after ``grace_s`` (0 = KILL at once)."""
        with self._lock:
            self._stopping = True
            children = [entry.child for entry in self._entries.values() if entry.child is not None]
        if grace_s <= 0:
            # without threads, which an interpreter that ends does not start any more
            for child in children:
                child.kill_group()
            for child in children:
                child.wait(_KILLED_S)
            return
        enders = [
            threading.Thread(target=child.terminate_group, args=(grace_s,), daemon=True) for child in children
        ]
        for ender in enders:
            ender.start()
        for ender in enders:
            ender.join()

    def _start(self, entry: _Entry) -> Child:
        child = self._launch(entry.make_spec())
        entry.child = child
        entry.started_at_ms = self._clock.monotonic_ms()
        logger.info("Started process %s (pid %d).", child.spec.name, child.pid)
        return child

    def _exited(self, name: str, entry: _Entry, child: Child, status: int) -> None:
        with self._lock:
            entry.child = None
            lived_ms = self._clock.monotonic_ms() - entry.started_at_ms
            delay_ms = None if self._stopping else entry.policy.next_delay_ms(entry.delay_ms, lived_ms)
            if delay_ms is None:
                self._entries.pop(name, None)
            entry.delay_ms = delay_ms
            expected = self._stopping or entry.ending or status == 0
            log = logger.info if expected else logger.warning
            again = "" if delay_ms is None else f"; it is started again in {delay_ms} ms"
            how = describe_exit(status) + again
            log("Process %s (pid %d) ended with %s.", child.spec.name, child.pid, how)
        if entry.observer is not None:
            entry.observer(child, status, delay_ms is not None)
        if delay_ms is not None:
            self._schedule(delay_ms, lambda: self._restart(name, entry))

    def _restart(self, name: str, entry: _Entry) -> None:
        with self._lock:
            if self._stopping or self._entries.get(name) is not entry:
                return
            try:
                child = self._start(entry)
            except YarnflowError as error:
                logger.error("Process %s could not be started again: %s", name, error)
                entry.delay_ms = entry.policy.next_delay_ms(entry.delay_ms, 0)
                if entry.delay_ms is None:
                    del self._entries[name]
                else:
                    self._schedule(entry.delay_ms, lambda: self._restart(name, entry))
                return
        child.on_exit(lambda status: self._exited(name, entry, child, status))


def describe_exit(status: int) -> str:
    """``exit status 3`` or ``signal 9``."""
    return f"exit status {status}" if status >= 0 else f"signal {-status}"
