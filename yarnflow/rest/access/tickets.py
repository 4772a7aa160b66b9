"""Codes and sessions of browsers: what is signed with a token and lets in for a while, without the token.

A code is in the link to the dashboard and lets one browser in; a session is in its cookie from then on.
Whoever has a token can make both, and every master of the cluster can check them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from yarnflow.rest.access.tokens import Access

_MAC_BYTES: Final = 16
_NONCE_BYTES: Final = 8
_FORM: Final = re.compile(r"(read|write)-([0-9a-f]{8,10})-([0-9a-f]{16})-([\w-]{22})", re.ASCII)


#: the clocks of two machines may differ by it
_SKEW_S: Final = 5 * 60


class Purpose(Enum):
    """What a ticket is for; the value is how many seconds it counts."""

    CODE = 5 * 60
    SESSION = 12 * 60 * 60


@dataclass(frozen=True, slots=True)
class Ticket:
    """One that is valid."""

    access: Access
    #: no other has it
    nonce: str
    #: since the epoch
    expires_s: int


def issue(token: str, access: Access, purpose: Purpose, now_s: float) -> str:
    """Return a new ticket.

    Parameters
    ----------
    token : str
        That of ``access``.
    """
    head = f"{access.value}-{int(now_s) + purpose.value:08x}-{secrets.token_hex(_NONCE_BYTES)}"
    return f"{head}-{_mac(token, purpose, head)}"


def verified(text: str, purpose: Purpose, token: Callable[[Access], str], now_s: float) -> Ticket | None:
    """Return what a ticket says; None = it is forged, has expired, or is for something else.

    Parameters
    ----------
    token : callable
        The token of an access.
    """
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    access, expires_s = Access(found[1]), int(found[2], 16)
    genuine = hmac.compare_digest(found[4], _mac(token(access), purpose, text[: -len(found[4]) - 1]))
    # one that counts for longer was not made here
    if not genuine or not now_s < expires_s <= now_s + purpose.value + _SKEW_S:
        return None
    return Ticket(access, found[3], expires_s)


def _mac(token: str, purpose: Purpose, head: str) -> str:
    text = f"yarnflow rest {purpose.name.lower()} {head}"
    digest = hmac.new(token.encode(), text.encode(), hashlib.sha256).digest()
    return urlsafe_b64encode(digest[:_MAC_BYTES]).decode().rstrip("=")
