"""One declaration per path and method; routing, validation and the documents are made from it.

Flink counterpart: ``RuntimeMessageHeaders``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeVar, cast, get_type_hints

from yarnflow.rest.access.tokens import Access
from yarnflow.rest.framework.parameters import Parameter

T = TypeVar("T")

_PLACE: Final = re.compile(r":(\w+)")
#: longest body of a route that says nothing else
MAX_BODY_BYTES: Final = 64 * 1024


class Call:
    """One request, validated.

    Parameters
    ----------
    values : mapping
        Name of a parameter → its value.
    headers : mapping
        Lower-case names.
    may_read : bool
        The client may read; only a public route is called for one that may not.
    """

    def __init__(self, values: Mapping[str, Any], headers: Mapping[str, str], may_read: bool = True) -> None:
        self._values = values
        self.headers = headers
        self.may_read = may_read

    def get(self, parameter: Parameter[T]) -> T:
        """The value of a parameter that the route declares."""
        return cast(T, self._values[parameter.name])


@dataclass(frozen=True, slots=True)
class TextFile:
    """An answer that is a file's content, or a part of it."""

    name: str
    content: bytes
    #: where the part begins, and the length of the whole; None = it is the whole
    part: tuple[int, int] | None = None
    media_type: str = "text/plain; charset=UTF-8"


@dataclass(frozen=True, slots=True)
class EventStream:
    """An answer that does not end by itself: server-sent events."""

    #: what is sent, in order
    events: AsyncGenerator[bytes]


@dataclass(frozen=True)
class Route:
    """One path with one method.

    Attributes
    ----------
    method, path : str
        Path as Flink writes it: ``/jobs/:jobid``.
    handler : callable
        ``handler(context, call)``, or ``handler(context, call, body)``; its annotations say what the body is
        and what it answers.
    summary : str
        One line for the documents.
    parameters : tuple of Parameter
        Of path and query.
    status : int
        Of its answer.
    writes : bool
        It changes something.
    blocks : bool
        It waits for a file or another process, and so runs in a thread of the pool, as all that writes.
    remote : bool
        It asks another process, which may not answer, and so runs in a thread that only such ones wait for.
    long : bool
        It may wait for minutes, and so runs in a thread that no other kind of request waits for.
    ours : bool
        Flink does not have it.
    public : bool
        Nobody needs a token.
    token_in_request : bool
        YARN's web proxy passes it on, without headers: a token may also be in query or body.
    """

    method: str
    path: str
    handler: Callable[..., Any]
    summary: str
    parameters: tuple[Parameter[Any], ...] = ()
    status: int = 200
    writes: bool = False
    blocks: bool = False
    remote: bool = False
    long: bool = False
    ours: bool = False
    public: bool = False
    token_in_request: bool = False
    max_body_bytes: int = field(default=MAX_BODY_BYTES)

    @cached_property
    def quick(self) -> bool:
        """It is called where requests are read."""
        return not (self.writes or self.blocks or self.remote)

    @cached_property
    def access(self) -> Access:
        """Who may call it."""
        return Access.WRITE if self.writes else Access.READ

    @cached_property
    def path_names(self) -> tuple[str, ...]:
        """Names of the path's parameters, in order."""
        return tuple(_PLACE.findall(self.path))

    @cached_property
    def path_parameters(self) -> tuple[Parameter[Any], ...]:
        """In the order of the path."""
        by_name = {parameter.name: parameter for parameter in self.parameters}
        return tuple(by_name[name] for name in self.path_names)

    @cached_property
    def query_parameters(self) -> tuple[Parameter[Any], ...]:
        """The others."""
        return tuple(p for p in self.parameters if p.name not in self.path_names)

    @cached_property
    def template(self) -> str:
        """``/jobs/{jobid}``."""
        return _PLACE.sub(r"{\1}", self.path)

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.handler)

    @cached_property
    def body(self) -> Any:
        """Type of the body; None = it has none."""
        names = list(inspect.signature(self.handler).parameters)
        return self._hints[names[2]] if len(names) > 2 else None

    @cached_property
    def answer(self) -> Any:
        """Type of the answer."""
        return self._hints["return"]
