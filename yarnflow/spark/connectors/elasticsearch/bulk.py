"""Requests of many documents, and what is done with those that were not taken.

Knows no client: what a request answers is a list with an entry for each document, in their order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from yarnflow.errors import ServerError, ServerUnavailable
from yarnflow.graph.connectors.elasticsearch import FlushBackoff

#: answers that say that the same may be taken later; 409: others have updated the document meanwhile
_PASSING: Final = frozenset({409, 429, 502, 503, 504})
#: how often the cluster itself updates a document again that others have updated meanwhile
_RETRIES_ON_CONFLICT: Final = 3
#: sends lines of a request; gives the entries of the answer
Send = Callable[[bytes], Sequence[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Document:
    """A document on its way."""

    index: str
    id: str
    source: bytes
    #: fields of one that is there are kept, unless this has them
    updates: bool = False

    @property
    def lines(self) -> bytes:
        """In a request."""
        place: dict[str, Any] = {"_index": self.index, "_id": self.id}
        if self.updates:
            place["retry_on_conflict"] = _RETRIES_ON_CONFLICT
            return b'%s\n{"doc":%s,"doc_as_upsert":true}\n' % (_compact({"update": place}), self.source)
        return b"%s\n%s\n" % (_compact({"index": place}), self.source)


def waits_s(backoff: FlushBackoff, max_retries: int, delay_ms: int) -> list[float]:
    """How long to wait before each further try."""
    if backoff is FlushBackoff.NONE:
        return []
    factor = 2 if backoff is FlushBackoff.EXPONENTIAL else 1
    return [delay_ms / 1000 * factor**tried for tried in range(max_retries)]


def write_documents(
    documents: Sequence[Document], send: Send, waits: Iterable[float], wait: Callable[[float], None]
) -> None:
    """Have the cluster take documents; those it had no time for are sent again.

    With one that is sent again go all later ones of the same id: the last has to be there in the end.

    Parameters
    ----------
    waits : iterable of float
        Seconds before each further try.

    Raises
    ------
    ServerUnavailable
        It does not answer, or has no time, and all tries are used up.
    ServerError
        It refuses a document.
    """
    left = list(waits)
    waiting = list(documents)
    while waiting:
        try:
            answer = send(b"".join(document.lines for document in waiting))
            not_taken = _not_taken(waiting, answer)
            if not not_taken:
                return
            failure = ServerUnavailable(
                f"{len(not_taken)} documents were not taken, such as {next(iter(not_taken.values()))}"
            )
            waiting = _again(waiting, not_taken)
        except ServerUnavailable as error:
            failure = error
        if not left:
            raise failure
        wait(left.pop(0))


def _not_taken(documents: Sequence[Document], answer: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Places of documents that may be taken later, and why they were not."""
    found: dict[int, str] = {}
    for place, (document, entry) in enumerate(zip(documents, answer, strict=True)):
        ((_, result),) = entry.items()
        if result.get("status", 500) < 300:
            continue
        why = f"document {document.id} of index {document.index}: {_reason(result.get('error'))}"
        if result["status"] not in _PASSING:
            raise ServerError(f"Elasticsearch does not take {why}")
        found[place] = why
    return found


def _again(documents: Sequence[Document], not_taken: Collection[int]) -> list[Document]:
    found: list[Document] = []
    ids: set[tuple[str, str]] = set()
    for place, document in enumerate(documents):
        if place in not_taken:
            ids.add((document.index, document.id))
        if (document.index, document.id) in ids:
            found.append(document)
    return found


def _reason(error: Any) -> str:
    if not isinstance(error, Mapping):
        return str(error)
    text = f"{error.get('type')}: {error.get('reason')}"
    cause = error.get("caused_by")
    return f"{text} ({_reason(cause)})" if cause else text


def chunks(
    documents: Iterable[Document], max_actions: int, max_bytes: int
) -> Iterator[list[Document]]:
    """Documents in requests of limited size; one that is larger by itself is alone."""
    found: list[Document] = []
    size = 0
    for document in documents:
        length = len(document.lines)
        if found and (len(found) >= max_actions or size + length > max_bytes):
            yield found
            found, size = [], 0
        found.append(document)
        size += length
    if found:
        yield found


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
