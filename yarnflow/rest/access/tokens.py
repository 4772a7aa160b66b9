"""The tokens of a cluster.

They follow from its secret, so that every master knows them, and they stay the same over failovers.
"""

from __future__ import annotations

import hashlib
import hmac
from enum import Enum
from typing import Final


class Access(Enum):
    """What somebody may do."""

    READ = "read"
    #: change something, and read
    WRITE = "write"


#: in the query of a link to the dashboard, see :mod:`yarnflow.rest.access.tickets`
CODE_FIELD: Final = "code"
_PURPOSE: Final = {Access.READ: b"yarnflow rest read", Access.WRITE: b"yarnflow rest write"}


def proxy_path(secret: bytes) -> str:
    """First word of the paths that YARN's web proxy asks for.

    Only skein's ApplicationMaster is told it, which stands between the proxy and this interface.  The address
    of a client could not say who comes through the proxy: it is the ApplicationMaster's own host.
    """
    return hmac.new(secret, b"yarnflow rest by yarn's proxy", hashlib.sha256).hexdigest()


def token(secret: bytes, access: Access) -> str:
    """64 hexadecimal digits.

    Parameters
    ----------
    secret : bytes
        The cluster's.
    """
    return hmac.new(secret, _PURPOSE[access], hashlib.sha256).hexdigest()
