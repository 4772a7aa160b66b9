"""Links to the dashboard that let a browser in."""

from __future__ import annotations

import time

from yarnflow.core.messages import RestAccess
from yarnflow.rest.access.tickets import Purpose, issue
from yarnflow.rest.access.tokens import CODE_FIELD, Access


def dashboard_link(access: RestAccess, place: str = "", *, read_only: bool = False) -> str:
    """Return the address of a page of the dashboard, with a code where the cluster wants to know who looks.

    One browser is let in by the code, once and soon; so it belongs before the eyes of the cluster's owner,
    and not into logs and documents.

    Parameters
    ----------
    access : RestAccess
        Of a cluster with a REST interface.
    place : str
        Within the dashboard, such as ``job/ID``; empty = its first page.
    read_only : bool
        The browser may change nothing.
    """
    fragment = f"/#/{place}" if place else ""
    kind, token = (Access.READ, access.read_token) if read_only else (Access.WRITE, access.write_token)
    if not token:
        return f"{access.address}{fragment}"
    code = issue(token, kind, Purpose.CODE, time.time())
    return f"{access.address}/?{CODE_FIELD}={code}{fragment.removeprefix('/')}"
