"""How a browser is let in: the code in a link to the dashboard becomes a cookie."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from yarnflow.rest.access.tickets import Purpose
from yarnflow.rest.access.tokens import CODE_FIELD
from yarnflow.rest.framework.application import error_response
from yarnflow.rest.framework.authentication import BY_PROXY, COOKIE_PREFIX, Authentication
from yarnflow.rest.framework.errors import RestError


class SignIn:
    """An ASGI application that takes codes, and passes on everything else.

    Parameters
    ----------
    application : ASGIApp
    authentication : Authentication
    """

    def __init__(self, application: ASGIApp, authentication: Authentication) -> None:
        self._application = application
        self._authentication = authentication
        #: nonce of a code that was used → when it expires; only changed in the event loop's thread
        self._used: dict[str, int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_page = scope["method"] == "GET" and scope["path"] == "/" and not scope.get(BY_PROXY)
        if not is_page or CODE_FIELD not in QueryParams(scope["query_string"]):
            await self._application(scope, receive, send)
            return
        try:
            answer = self._let_in(Request(scope))
        except RestError as error:
            answer = error_response(error)
        await answer(scope, receive, send)

    def _let_in(self, request: Request) -> Response:
        """Lead to the same page without the code, which a browser then does not remember either."""
        query = request.query_params
        rest = urlencode([(name, value) for name, value in query.multi_items() if name != CODE_FIELD])
        # relative, so that a path before it, of a gateway, stays
        answer = Response(status_code=303, headers={"Location": f"./?{rest}" if rest else "./"})
        if self._authentication.is_needed:
            session = self._session(query[CODE_FIELD])
            answer.set_cookie(
                # browsers send a cookie to all ports of a host
                f"{COOKIE_PREFIX}{_port(request)}",
                session,
                max_age=Purpose.SESSION.value,
                path="/",
                httponly=True,
                samesite="strict",
            )
        return answer

    def _session(self, code: str) -> str:
        now_s = self._authentication.now_s()
        self._used = {nonce: expires for nonce, expires in self._used.items() if expires > now_s}
        ticket = self._authentication.verified(code, Purpose.CODE)
        if ticket is None or ticket.nonce in self._used:
            raise RestError(
                403, "the code of this link has been used, or is too old; `yarnflow dashboard` prints another"
            )
        self._used[ticket.nonce] = ticket.expires_s
        return self._authentication.session(ticket.access)


def _port(request: Request) -> int:
    try:
        return urlsplit(f"//{request.headers.get('host', '')}").port or 80
    except ValueError:
        return 80
