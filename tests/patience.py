"""How long tests wait for what will happen: one place for all limits, longer on a slow machine.

The limits are those of a machine that does little else, times the factor of the session
(``tests/fixed_start.py``).  Without a session of tests, as in benchmarks, the factor is 1.
"""

from __future__ import annotations

from typing import Final


class _Limit:
    """A limit in seconds; as long as the machine of the session needs it to be."""

    def __init__(self, on_a_quiet_machine: float) -> None:
        self._seconds = on_a_quiet_machine

    def __get__(self, patience: Patience, _owner: type[Patience]) -> float:
        return self._seconds * patience.factor


class Patience:
    """Upper limits by what is waited for; read when a wait begins, as the factor is not known at import."""

    #: another thread of this process: an event, an item in a queue, its end
    thread_s = _Limit(60)
    #: the answer of a server, or a connection to it
    answer_s = _Limit(120)
    #: a process that has been told to end, or has little to do
    process_s = _Limit(60)
    #: what a page in a browser shows when nothing but the page works on it
    page_s = _Limit(30)
    #: whatever a cluster, a job or a process of a cluster comes to
    condition_s = _Limit(360)
    #: a server from its start to its first answer
    server_s = _Limit(300)
    #: one command of ``yarnflow`` from its start to its end
    command_s = _Limit(480)
    #: a job from its start to its last result
    job_s = _Limit(600)
    #: what comes over the network at first use, and is kept
    download_s = _Limit(600)

    def __init__(self) -> None:
        self.factor = 1.0


PATIENCE: Final = Patience()
