"""Posts JSON to an address, in a thread of its own: whoever has something to say never waits."""

from __future__ import annotations

import json
import logging
import threading
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from http.client import HTTPException
from typing import Any, Final

from yarnflow.config.secrets import HIDDEN, masked_urls

logger = logging.getLogger(__name__)

#: those that wait to be sent; further ones are only in the log
MAX_WAITING: Final = 100
_FIRST_PAUSE_S: Final = 1.0
_SCHEMES: Final = ("http://", "https://")

#: (address, body, time-out in seconds): sends, or raises OSError or HTTPException
Post = Callable[[str, bytes, float], None]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """What is sent elsewhere is asked for there by GET, without the alert, and would be taken for sent."""

    def redirect_request(self, *_arguments: Any) -> None:
        """See the library: None = the answer is an error."""


_OPENER: Final = urllib.request.build_opener(_NoRedirects)


def post_json(url: str, body: bytes, timeout_s: float) -> None:
    """Send; raises OSError or HTTPException when that does not succeed with a status below 300."""
    request = urllib.request.Request(
        url, body, {"Content-Type": "application/json", "User-Agent": "yarnflow"}, method="POST"
    )
    # the address is the operator's own, and of one of two schemes
    with _OPENER.open(request, timeout=timeout_s) as answer:
        answer.read(0)


class Webhook:
    """One address.

    Parameters
    ----------
    url : str
        Its path and query may be a secret; logs show the host only.
    timeout_ms : int
        For one try.
    attempts : int
        Tries, with a pause that doubles.
    post : callable, optional
        Sends.
    """

    def __init__(self, url: str, timeout_ms: int, attempts: int, post: Post = post_json) -> None:
        self._url = url
        self._timeout_s = timeout_ms / 1000
        self._attempts = attempts
        self._post = post
        self._changed = threading.Condition()
        # guarded by _changed
        self._waiting: deque[bytes] = deque()
        self._stopped = False
        self._busy = False

    def start(self) -> None:
        """Send from now on."""
        threading.Thread(target=self._run, name="alert-webhook", daemon=True).start()

    def stop(self) -> None:
        """Send no more; a request under way is not waited for."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def send(self, content: Mapping[str, Any]) -> None:
        """Send soon; any thread."""
        with self._changed:
            if len(self._waiting) >= MAX_WAITING:
                logger.warning("%d alerts wait for %s; this one is left out.", MAX_WAITING, self._shown)
                return
            self._waiting.append(json.dumps(content).encode())
            self._changed.notify_all()

    def await_sent(self, timeout_s: float) -> bool:
        """Wait until nothing is left to be sent; False = something is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, timeout_s)

    @property
    def _shown(self) -> str:
        """Without what lets others in, which services of this kind have in the path."""
        scheme, _, rest = masked_urls(self._url).partition("://")
        host, slash, _ = rest.partition("/")
        return f"{scheme}://{host}{'/' + HIDDEN if slash else ''}"

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._stopped or bool(self._waiting))
                if self._stopped:
                    return
                body = self._waiting.popleft()
                self._busy = True
            self._send(body)

    def _send(self, body: bytes) -> None:
        for attempt in range(1, self._attempts + 1):
            try:
                self._post(self._url, body, self._timeout_s)
                return
            except (OSError, ValueError, HTTPException) as error:
                # texts of such errors may have the address in them
                reason = error.code if isinstance(error, urllib.error.HTTPError) else type(error).__name__
                logger.warning(
                    "The alert did not reach %s (%s), try %d of %d.",
                    self._shown,
                    reason,
                    attempt,
                    self._attempts,
                )
            with self._changed:
                pause_s = _FIRST_PAUSE_S * 2 ** (attempt - 1)
                if attempt < self._attempts and self._changed.wait_for(lambda: self._stopped, pause_s):
                    return


def is_url(url: str) -> bool:
    """Whether something can be posted there."""
    return url.startswith(_SCHEMES)
