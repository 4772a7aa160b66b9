"""Who may read and who may write: the check of requests.  Flink's REST interface knows nobody."""

from __future__ import annotations

import hmac
import json
from dataclasses import dataclass, field
from typing import Final, Protocol

from starlette.requests import Request

from yarnflow.rest.framework.errors import RestError
from yarnflow.rest.framework.route import Route
from yarnflow.rest.framework.tokens import Access, token

#: header for clients that cannot set ``Authorization``
TOKEN_HEADER: Final = "x-yarnflow-token"
#: in the scope of a request that came through YARN's proxy
BY_PROXY: Final = "by_yarn_proxy"
#: in queries and bodies of the routes that YARN's proxy passes on, which passes on no such header
TOKEN_FIELD: Final = "token"


class Checks(Protocol):
    """Who may do what."""

    def check(self, request: Request, route: Route, body: bytes = b"") -> bool:
        """Whether the client may read; of a public route it may be that it may not.

        Raises
        ------
        RestError
            401, 403: the request may not do what the route does.
        """


@dataclass(frozen=True, slots=True)
class OneToken:
    """Whoever has the token may do all there is; of a server where nothing can be changed."""

    #: empty = none is needed
    token: str = field(default="", repr=False)

    def check(self, request: Request, route: Route, body: bytes = b"") -> bool:
        """See :class:`Checks`."""
        given = _given(request, route, body).encode("utf-8", "replace")
        may_read = not self.token or hmac.compare_digest(given, self.token.encode())
        if may_read or route.public:
            return may_read
        raise RestError(
            401, "a token is needed: send it as 'Authorization: Bearer …' or in X-Yarnflow-Token"
        )


@dataclass(frozen=True, slots=True)
class Authentication:
    """The check of every request."""

    #: of the cluster; empty = everybody may do everything
    secret: bytes = field(default=b"", repr=False)

    def check(self, request: Request, route: Route, body: bytes = b"") -> bool:
        """Whether the client may read; of a public route it may be that it may not.

        Raises
        ------
        RestError
            401, 403: the request may not do what the route does.
        """
        by_proxy = route.token_in_request and request.method == "PUT" and self.is_proxy(request)
        if route.writes and not by_proxy:
            self._check_site(request)
        if not self.secret:
            return True
        given = _given(request, route, body).encode("utf-8", "replace")
        may_write = hmac.compare_digest(given, token(self.secret, Access.WRITE).encode())
        may_read = hmac.compare_digest(given, token(self.secret, Access.READ).encode())
        reads = may_write or may_read or self.is_proxy(request)
        if may_write or route.public or (reads and route.access is Access.READ):
            return reads
        if may_read:
            raise RestError(403, "the token of this request may only read")
        raise RestError(
            401,
            "a token of the cluster is needed: send it as 'Authorization: Bearer …' or in X-Yarnflow-Token "
            "(rest-tokens.json in the cluster's directory)",
        )

    def token_for(self, request: Request) -> str:
        """What a standby adds to a request that it passes on: who may read here may read from the leader.

        Empty = nothing.
        """
        given = "authorization" in request.headers or TOKEN_HEADER in request.headers
        if not self.secret or given or not self.is_proxy(request):
            return ""
        return token(self.secret, Access.READ)

    def is_proxy(self, request: Request) -> bool:
        """Whether YARN's web proxy asks for somebody: it knows its users, and who comes from there may read.

        It passes on the origin of a page, which is the proxy's own, and not the host that was asked for.  A
        page of another site can have no PUT sent through it: a browser asks by OPTIONS first, which the
        proxy refuses.
        """
        return bool(request.scope.get(BY_PROXY))

    @staticmethod
    def _check_site(request: Request) -> None:
        """A page of another site may not have a browser change anything."""
        origin = request.headers.get("origin", "")
        here = request.headers.get("host", "")
        site = request.headers.get("sec-fetch-site", "none")
        # no browser sends an origin that is no address
        foreign = bool(origin) and origin.partition("://")[2] != here
        if site not in ("none", "same-origin") or foreign:
            raise RestError(403, "a page of another site asks for a change")


def _given(request: Request, route: Route, body: bytes) -> str:
    if route.token_in_request and (value := _in_request(request, body)):
        return value
    kind, _, value = request.headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and value:
        return value.strip()
    return request.headers.get(TOKEN_HEADER, "")


def _in_request(request: Request, body: bytes) -> str:
    value = request.query_params.get(TOKEN_FIELD, "")
    if value or not body:
        return value
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    found = content.get(TOKEN_FIELD, "") if isinstance(content, dict) else ""
    return found if isinstance(found, str) else ""
