"""Trying again while a server is away."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

from yarnflow.errors import ServerUnavailable

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


def tried_again(attempt: Callable[[], _T], waits_s: Iterable[float], wait: Callable[[float], None]) -> _T:
    """What an attempt gives; one that finds the server away is made again.

    Parameters
    ----------
    waits_s : iterable of float
        Before each further attempt.
    wait : callable
        Waits so many seconds.

    Raises
    ------
    ServerUnavailable
        The last one has found it away as well.
    """
    for before_s in waits_s:
        try:
            return attempt()
        except ServerUnavailable as error:
            logger.warning("Trying again in %g s: %s", before_s, error)
            wait(before_s)
    return attempt()
