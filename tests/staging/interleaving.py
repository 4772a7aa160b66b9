"""Runs several actors step by step, in an order the test decides."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from tests.patience import PATIENCE


class Interleaving:
    """Actors are threads of which one at a time runs, from one call of :meth:`step` to the next."""

    def __init__(self) -> None:
        self._turns: dict[str, threading.Semaphore] = {}
        self._names: dict[int, str] = {}
        self._paused = threading.Semaphore(0)
        self._threads: list[threading.Thread] = []
        self._failures: list[BaseException] = []

    def add(self, name: str, body: Callable[[], None]) -> None:
        """A further actor; it begins when it is chosen.  May be called by an actor."""
        turn = self._turns[name] = threading.Semaphore(0)

        def run() -> None:
            self._names[threading.get_ident()] = name
            turn.acquire()
            try:
                body()
            except BaseException as error:  # raised again by ``run`` below
                self._failures.append(error)
            finally:
                del self._turns[name]
                self._paused.release()

        thread = threading.Thread(target=run, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def step(self, *_: object) -> None:
        """The running actor pauses here; without effect outside of actors."""
        turn = self._turns.get(self._names.get(threading.get_ident(), ""))
        if turn is not None:
            self._paused.release()
            turn.acquire()

    def run(self, choices: Sequence[int]) -> None:
        """Let all actors run to their ends; ``choices`` say who is next, then they take turns."""
        number = 0
        while self._turns:
            names = sorted(self._turns)
            choice = choices[number] if number < len(choices) else number
            self._turns[names[choice % len(names)]].release()
            assert self._paused.acquire(timeout=PATIENCE.thread_s), "an actor hangs"
            number += 1
            if self._failures:
                break
        for turn in list(self._turns.values()):
            # after a failure: let the others end, too
            for _ in range(1000):
                turn.release()
        for thread in self._threads:
            thread.join(PATIENCE.thread_s)
        if self._failures:
            raise self._failures[0]
