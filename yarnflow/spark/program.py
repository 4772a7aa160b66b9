"""What a driver runs: a job graph or a script, behind one small interface."""

from __future__ import annotations

from typing import Protocol


class Program(Protocol):
    """One run of one job in this driver.  Made, started and awaited by the main thread."""

    def start(self) -> None:
        """Compile and start.  A script only gets ready here; its main is run by ``await_end``."""

    def await_end(self) -> None:
        """Block until everything has ended; returns normally after :meth:`stop` as well.

        Raises
        ------
        YarnflowError
            The program or one of its queries failed.
        """

    def stop(self) -> None:
        """Stop what runs; returns soon.  Any thread, any time, idempotent."""
