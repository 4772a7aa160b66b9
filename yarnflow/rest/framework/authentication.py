"""Who may read and who may write: the check of requests.  Flink's REST interface knows nobody."""

from __future__ import annotations

import hmac
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from starlette.requests import Request

from yarnflow.core.hosts import is_loopback
from yarnflow.rest.access.hosts import NameKind
from yarnflow.rest.access.tickets import Purpose, Ticket, issue, verified
from yarnflow.rest.access.tokens import Access, token
from yarnflow.rest.framework.errors import MAX_SHOWN_CHARACTERS, RestError
from yarnflow.rest.framework.route import Route

logger: Final = logging.getLogger(__name__)

#: header for clients that cannot set ``Authorization``
TOKEN_HEADER: Final = "x-yarnflow-token"
#: in the scope of a request that came through YARN's proxy
BY_PROXY: Final = "by_yarn_proxy"
#: in the scope of a request: by whose name it came, see :class:`NameKind`
NAME_KIND: Final = "kind_of_host_name"
#: in the scope of a request: value of a header ``Warning`` of its answer
WARNING: Final = "warning_of_answer"
#: says that a standby passed the request on, so that no two of them do it for ever
FORWARDED_HEADER: Final = "x-yarnflow-forwarded"
#: of the cookies that hold sessions; the port follows
COOKIE_PREFIX: Final = "yarnflow-session-"
#: in queries and bodies of the routes that YARN's proxy passes on, which passes on no such header
TOKEN_FIELD: Final = "token"
#: ``Sec-Fetch-Site`` of what a page from here asks for, or a person
_OWN_SITE: Final = ("none", "same-origin")
#: of those who ask for somebody else
_PASSED_ON: Final = (
    "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via",
    FORWARDED_HEADER,
)  # fmt: skip


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
        raise RestError(401, "a token is needed: send it as 'Authorization: Bearer …' or in X-Yarnflow-Token")


class Authentication:
    """The check of every request.

    Parameters
    ----------
    secret : bytes
        Of the cluster; empty = everybody may do everything.
    loopback_reads : bool
        Whoever asks from this machine may read without a token, and is told that this will end.
    now_s : callable, optional
        Time since the epoch.
    """

    def __init__(
        self, secret: bytes = b"", loopback_reads: bool = False, now_s: Callable[[], float] = time.time
    ) -> None:
        self._secret = secret
        self._loopback_reads = loopback_reads
        self.now_s = now_s
        self._has_warned = False

    @property
    def is_needed(self) -> bool:
        """Whether a request needs a token, or what stands for one."""
        return bool(self._secret)

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
        if not self._secret:
            return True
        given = _given(request, route, body)
        says_who = bool(given) or _has_credentials(request)
        access = self._of_token(given) if says_who else self._otherwise(request)
        if route.public or access is Access.WRITE or access is route.access:
            return access is not None
        if access is Access.READ and says_who:
            raise RestError(403, "the token of this request may only read")
        if access is None and not says_who and self._may_read_for_now(request, route):
            return True
        raise RestError(
            401,
            "a token of the cluster is needed: send it as 'Authorization: Bearer …' or in X-Yarnflow-Token "
            "(`yarnflow token` prints it; rest-tokens.json in the cluster's directory)",
        )

    def verified(self, text: str, purpose: Purpose) -> Ticket | None:
        """Return what a code or session says; None = it does not count."""
        return verified(text, purpose, self._token, self.now_s()) if self._secret else None

    def session(self, access: Access) -> str:
        """Return the value of a new cookie."""
        return issue(self._token(access), access, Purpose.SESSION, self.now_s())

    def token_for(self, request: Request) -> str:
        """What a standby adds to a request that it passes on: who may read here may read from the leader.

        Empty = nothing.
        """
        if not self._secret or _has_credentials(request) or not self.is_proxy(request):
            return ""
        return self._token(Access.READ)

    def is_proxy(self, request: Request) -> bool:
        """Whether YARN's web proxy asks for somebody: it knows its users, and who comes from there may read.

        It passes on the origin of a page, which is the proxy's own, and not the host that was asked for.  A
        page of another site can have no PUT sent through it: a browser asks by OPTIONS first, which the
        proxy refuses.
        """
        return bool(request.scope.get(BY_PROXY))

    def _token(self, access: Access) -> str:
        return token(self._secret, access)

    def _of_token(self, given: str) -> Access | None:
        sent = given.encode("utf-8", "replace")
        matches = [each for each in Access if hmac.compare_digest(sent, self._token(each).encode())]
        return matches[0] if matches else None

    def _otherwise(self, request: Request) -> Access | None:
        """Return what a request without a token may do."""
        session = self._of_session(request)
        if session is None and self.is_proxy(request):
            return Access.READ
        return session

    def _of_session(self, request: Request) -> Access | None:
        """Return what the cookies of a request let it do.

        A browser also sends them for pages of other ports of this host.  Those have it send no answer's
        content, but what a request changes is changed: for that it must say that the page is one from here,
        which it does not say of a GET.
        """
        if request.headers.get("sec-fetch-site", "none") not in _OWN_SITE:
            return None
        values = [value for name, value in request.cookies.items() if name.startswith(COOKIE_PREFIX)]
        tickets = [self.verified(value, Purpose.SESSION) for value in values]
        found = {ticket.access for ticket in tickets if ticket is not None}
        if Access.WRITE in found:
            is_said = request.method not in ("GET", "HEAD") and "origin" in request.headers
            return Access.WRITE if is_said else Access.READ
        return Access.READ if found else None

    def _may_read_for_now(self, request: Request, route: Route) -> bool:
        """Return whether a request of this machine is answered for one release more."""
        if route.writes or not self._loopback_reads or not _is_of_this_machine(request):
            return False
        request.scope[WARNING] = (
            '299 yarnflow "the next release asks for a token here: send it as Authorization: Bearer TOKEN; '
            '`yarnflow token` prints it"'
        )
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "%s %s was answered without a token, as it came from this machine; the next release will "
                "refuse that. Clients send one as 'Authorization: Bearer …' (yarnflow token), browsers are "
                "let in by the link of yarnflow dashboard. This is said once.",
                request.method,
                request.scope["path"][:MAX_SHOWN_CHARACTERS],
            )
        return True

    @staticmethod
    def _check_site(request: Request) -> None:
        """A page of another site may not have a browser change anything."""
        origin = request.headers.get("origin", "")
        here = request.headers.get("host", "")
        site = request.headers.get("sec-fetch-site", "none")
        # no browser sends an origin that is no address
        foreign = bool(origin) and origin.partition("://")[2] != here
        if site not in _OWN_SITE or foreign:
            raise RestError(403, "a page of another site asks for a change")


def _has_credentials(request: Request) -> bool:
    """Return whether a request says who asks, be it wrong or in a form that is not known."""
    return "authorization" in request.headers or TOKEN_HEADER in request.headers


def _is_of_this_machine(request: Request) -> bool:
    """Return whether its client runs here, and nobody asks through it, as far as that can be seen."""
    passed_on = any(name in request.headers for name in _PASSED_ON)
    own_name = request.scope.get(NAME_KIND) is NameKind.OWN
    client = request.client
    return client is not None and is_loopback(client.host) and own_name and not passed_on


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
