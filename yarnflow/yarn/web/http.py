"""JSON over HTTP from YARN's daemons.

Decides how their answers become values or errors and which of several ResourceManagers is asked.
Never repeats a call that a daemon has answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import requests

from yarnflow.errors import YarnError, YarnUnavailable

_CONNECT_TIMEOUT_S: Final = 3.0
_JSON: Final = "application/json"


class RemoteFailure(YarnError):
    """A daemon answered that it could not do it.

    Parameters
    ----------
    status : int
        HTTP status.
    reason : str
        What the daemon says, one line.
    """

    def __init__(self, message: str, status: int, reason: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason

    def __reduce__(self) -> tuple[type[RemoteFailure], tuple[str, int, str]]:
        return type(self), (self.message, self.status, self.reason)


class WebServices:
    """Web services of one daemon, or of several of which one is active.

    Parameters
    ----------
    addresses : sequence of str
        ``host:port`` or whole URLs.
    user : str
        Who asks, where there is no Kerberos.
    what : str
        What the daemon is called in messages.
    advice : str
        What to do when it does not answer.
    timeout_ms : int
        To wait for an answer.
    """

    def __init__(
        self, addresses: Sequence[str], user: str, *, what: str, advice: str, timeout_ms: int = 10_000
    ) -> None:
        self._addresses = [base_url(address) for address in addresses]
        self._user = user
        self._what = what
        self._advice = advice
        self._timeout_s = timeout_ms / 1000
        self._session = requests.Session()
        # Hadoop's own clients take no proxy from the environment either
        self._session.trust_env = False

    def get(self, path: str, **parameters: str) -> Mapping[str, Any]:
        """A JSON object.

        Raises
        ------
        YarnUnavailable
            Nobody answers, or nobody is active.
        RemoteFailure
            The daemon says no.
        """
        return self._object(self._call("GET", path, parameters), path)

    def put(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send a JSON object; raises as ``get``."""
        return self._object(self._call("PUT", path, {}, body), path)

    def content(self, path: str, **parameters: str) -> bytes:
        """Any content; raises as ``get``."""
        content: bytes = self._call("GET", path, parameters, accept="*/*").content
        return content

    def close(self) -> None:
        self._session.close()

    def _call(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
        accept: str = _JSON,
    ) -> Any:
        problem = "no address is configured"
        for address in list(self._addresses):
            try:
                answer = self._session.request(
                    method,
                    address + path,
                    params={**parameters, "user.name": self._user},
                    json=body,
                    headers={"Accept": accept},
                    timeout=(min(_CONNECT_TIMEOUT_S, self._timeout_s), self._timeout_s),
                )
            except requests.RequestException as error:
                problem = f"{address}: {_in_words(error)}"
                continue
            if not _answered(answer, accept):
                problem = f"{address}: {answer.status_code} {_one_line(answer.text)}"
                continue
            # next time, the one that answered is asked first; other threads never see a shorter list
            self._addresses = [address, *(other for other in self._addresses if other != address)]
            if answer.status_code >= 400:
                reason = _reason(answer)
                raise RemoteFailure(
                    f"{self._what} ({address}) refused {method} {path}: {answer.status_code} {reason}",
                    answer.status_code,
                    reason,
                )
            return answer
        raise YarnUnavailable(f"{self._what} does not answer ({problem}); {self._advice}")

    def _object(self, answer: Any, path: str) -> Mapping[str, Any]:
        try:
            value = answer.json()
        except ValueError as error:
            raise YarnError(f"{self._what} sent no JSON for {path}: {_one_line(answer.text)}") from error
        if not isinstance(value, dict):
            raise YarnError(f"{self._what} sent no JSON object for {path}: {_one_line(answer.text)}")
        return value


def base_url(address: str) -> str:
    """``host:port`` → ``http://host:port``; whole URLs stay."""
    return (address if "://" in address else f"http://{address}").rstrip("/")


def _answered(answer: Any, accept: str) -> bool:
    """Not a standby ResourceManager's page, which is HTML or text, and not a proxy's error."""
    if accept != _JSON:
        return not (answer.status_code >= 502 or answer.status_code == 307)
    return _JSON in answer.headers.get("Content-Type", "") or answer.status_code in (401, 403)


def _reason(answer: Any) -> str:
    try:
        remote = answer.json()["RemoteException"]
        return _one_line(str(remote.get("message") or remote.get("exception")))
    except (ValueError, KeyError, TypeError, AttributeError):
        return _one_line(answer.text)


def _one_line(text: str) -> str:
    line = " ".join(text.removeprefix("java.lang.Exception: ").split())
    return line if len(line) <= 300 else line[:297] + "…"


def _in_words(error: requests.RequestException) -> str:
    if isinstance(error, requests.ConnectTimeout):
        return "no connection in time"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    text = str(error)
    if "Connection refused" in text:
        return "connection refused"
    if "Name or service not known" in text or "Failed to resolve" in text:
        return "host is not known"
    return _one_line(text)
